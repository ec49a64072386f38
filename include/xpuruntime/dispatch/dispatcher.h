#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "xpuruntime/dispatch/call.h"
#include "xpuruntime/dispatch/dispatch_log.h"
#include "xpuruntime/dispatch/scope.h"
#include "xpuruntime/precision/precision.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/select/decision.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

class CastFrame;
struct Prepared;
struct TableEntry;
struct ThreadState;

/// A kernel that failed on a problem and is not run on it again.
struct QuarantinedPlan {
  Problem problem = {};
  std::string kernel = {};
  std::string reason = {};
};

/// Gives the times that scopes are made with where their strategy looks at times: a frozen part of a store. Asked each
/// time such a scope is made; the same object again gives the same scope. Null: the dispatcher's own statistics count.
using MeasuredSource = std::function<std::shared_ptr<const Measurements>()>;

/// Measures a problem now and gives what was found about it, or why that could not be done, for the decision; null:
/// nothing is to be said. The text names the kernel that would run without it.
using TuneAnswer = std::variant<std::shared_ptr<const Measurements>, std::string>;
using TuneHook = std::function<TuneAnswer(const Problem&, const std::string& incumbent)>;

/// Says why a kernel that a lock names, with that plan, does not do its work here any more; empty: it does. Asked for
/// entries that were made on this device with other software.
using RevalidateHook = std::function<std::string(const Problem&, const std::string& kernel, const std::string& plan)>;

/// Called for every decision that is made for a call: each problem's first, what is made anew after a change, and the
/// kernel that takes over from one that failed.
using DecisionHook = std::function<void(const std::shared_ptr<const Decision>&)>;

/// Called after every launch. The times are the host's: of a device that works on by itself, the launch's.
using CallHook = std::function<void(const LogEntry&)>;

/// From a call to a kernel that runs. The first call of a signature decides, prepares and remembers; a repeated one
/// compares its signature with this thread's table and runs: no lock, no allocation, no string.
/// All functions are safe to call from many threads; destroy it when no thread uses it any more.
class Dispatcher {
 public:
  explicit Dispatcher(KernelRegistry& registry);
  ~Dispatcher();
  Dispatcher(const Dispatcher&) = delete;
  Dispatcher& operator=(const Dispatcher&) = delete;

  /// Decides and queues the call on its device's current stream. Throws Error if the call is wrong or nothing can run
  /// it; a launch that fails quarantines its plan and goes on to the next kernel where the policy allows another.
  void dispatch(const Call& call);
  /// The same for a caller that repeats the call and itself keeps outputs out of the memory of inputs and other
  /// outputs: that is checked when a thread first comes by.
  void dispatch(const Call& call, CallSite& site);

  /// Decides without running. The reference is good until this thread's next call on this dispatcher.
  const Decision& decide(const Call& call);

  /// How many calls of this thread were not in its table so far: each problem's first call, what a change of kernels or
  /// of the policy made anew, and what was evicted where thousands of problems take turns.
  std::uint64_t table_misses() const;

  /// What would be decided for a problem, and why; the plan is prepared, nothing runs. Where nothing can run it, the
  /// decision's kernel is empty and `because` says why. Never throws for a problem that is right.
  /// A precision is what the call would ask for, whatever rules say.
  Decision explain(const Problem& problem, std::optional<DataType> precision = {});

  /// The policy for all threads that are in no scope of their own.
  void set_policy(const KernelPolicy& policy);
  /// Replays a lock in the whole process: in every call that is in no scope with a lock of its own, also in scopes that
  /// were entered before. What the lock does not hold is an error, whatever the policy says. Without a lock in it, none
  /// is in force any more.
  void set_lock(const LockUse& lock);
  /// The lock that calls of this thread are under, or none in it; nothing where they are refused (LockHold).
  std::optional<LockUse> lock() const;
  /// The policy in force on this thread.
  KernelPolicy policy() const;
  /// The scope in force on this thread, to be entered on another with ScopedPolicy.
  ScopePtr current_scope() const;

  /// Puts a scope in force on this thread until leave_scope gets the number it returns: for programs that cannot hold a
  /// guard. A number that was not given on this thread, or whose scope was left, is an error.
  std::uint64_t enter_scope(ScopePtr scope);
  void leave_scope(std::uint64_t token);
  /// A scope of its own: nothing of the current one is in it. Without a lock it is under the process's.
  ScopePtr make_scope(const KernelPolicy& policy, const Autocast& autocast = {},
                      const std::optional<LockUse>& lock = {}) const;
  /// The current scope with a policy layered over its own, or with autocast or a lock as given.
  ScopePtr layered_scope(const KernelPolicy& policy) const;
  ScopePtr layered_scope(const Autocast& autocast) const;
  ScopePtr layered_scope(const LockUse& lock) const;
  /// Whether autocast is on in this thread's scope.
  bool autocast_enabled() const { return current_scope()->autocast.on(); }

  /// What to allocate for a call: the outputs that follow from the inputs at the precision that it would run in; those
  /// that the call may have do not count. The reference is good until this thread's next call on this dispatcher.
  const std::vector<TensorSpec>& output_specs(const Call& call);
  /// The same if this thread has asked for it before, else null: it never decides anything, and takes no lock.
  const std::vector<TensorSpec>* known_output_specs(const Call& call) const;

  /// Chooses dtypes for problems; see PrecisionHook. An empty hook removes it.
  void set_precision_hook(PrecisionHook hook);

  // An empty function takes the hook away. No lock is held while one runs.

  /// Where measured choices come from, instead of this dispatcher's own statistics. Scopes that are in force keep what
  /// they have; set_policy or a new scope looks again.
  void set_measured_source(MeasuredSource source);
  /// Under best_performance, problems that were never measured are measured before their first run.
  void set_tuner(TuneHook tuner);
  /// What policies do that name no strategy: first_supported, unless this says otherwise. Scopes that are in force keep
  /// what they have.
  void set_default_strategy(Strategy strategy);
  /// Called in the thread that decides or calls; what they throw comes out of the call. They must call no op.
  void set_decision_hook(DecisionHook hook);
  void set_call_hook(CallHook hook);
  /// Checks entries of a lock that have to be revalidated; without it they are used if the plan is the same.
  void set_revalidator(RevalidateHook revalidator);

  // The log: a ring of `capacity` calls per thread, and as many of all threads that have ended. 0 turns it off and
  // keeps what is there.
  void enable_logging(std::size_t capacity = 4096);
  void disable_logging();
  bool logging_enabled() const { return (log_capacity_.load(std::memory_order_relaxed) & ~calls_are_told) != 0; }
  /// What was logged, oldest first; waits for device times that are not there yet.
  std::vector<LogEntry> logs() const;
  /// What callers did, oldest first: the last ones, as many as the log has calls for a thread.
  std::vector<LogSpan> spans() const;
  /// How many calls the rings have dropped since the last clear.
  std::uint64_t dropped_logs() const;
  void clear_logs();

  /// Times by (problem, kernel): those of logged calls and those recorded by hand.
  Statistics& statistics() const;
  /// Adds the times of calls logged so far to the statistics.
  void collect_statistics() const;

  /// Kernels that must not run a problem: those that failed on it in a call, and those that tuning in this process
  /// found wrong.
  std::vector<QuarantinedPlan> quarantined() const;
  /// Adds to these. From its next call on every thread refuses the kernel for the problem, whatever the strategy.
  void quarantine(const Problem& problem, const std::shared_ptr<const Kernel>& kernel, const std::string& reason);
  /// Allows all of them again. What a store holds against a kernel stays there.
  void clear_quarantine();

  KernelRegistry& registry() const { return registry_; }

 private:
  friend class ScopedSpan;
  friend class ScopeGuard;  // leaves without throwing
  friend class LockHold;
  struct Impl;

  ThreadState& thread_state() const;
  std::uint64_t stamp(const ThreadState& state) const;
  ScopePtr scope_at(std::uint64_t stamp) const;
  TableEntry& entry_for(const Call& call);
  const Decision& decide_anew(const Call& call);
  std::vector<TensorSpec> infer_output_specs(const Call& call, const Scope& scope, std::uint64_t stamp) const;
  Status launch(const TableEntry& entry, const Call& call);
  Status launch_logged(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity);
  Status launch_logged_on_device(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity);
  void recover(const Call& call, ThreadState& state, const std::shared_ptr<Prepared>& failed, Status status);
  Status run(const TableEntry& entry, const Call& call, ThreadState& state);
  Status launch_told(const TableEntry& entry, const Call& call, ThreadState& state, std::size_t capacity);
  Status run_plan(const TableEntry& entry, const Call& call, ThreadState& state);
  Status run_with_casts(const TableEntry& entry, const Call& call, ThreadState& state);
  const Tensor* cast_input(const Prepared& prepared, std::size_t step, const Tensor& from, Stream stream,
                           CastFrame& frame, ThreadState& state);
  void run_cast(const TableEntry& cast, const Tensor& from, const Tensor& to, ThreadState& state);
  bool try_leave_scope(std::uint64_t token) noexcept;
  void set_log_capacity(std::size_t capacity);
  void hold_locks(int change);
  void publish_base();

  KernelRegistry& registry_;
  const std::uint64_t id_;
  // One word, as warm calls look at it. Lower half: the base scope's id. Upper: all ones where calls that no lock
  // reaches are refused.
  std::atomic<std::uint64_t> base_{0};
  // 0: calls are not logged and there is no call hook. One word, as warm calls look at it.
  static constexpr std::size_t calls_are_told = ~(~std::size_t{0} >> 1);  // beside the capacity: there is a call hook
  std::atomic<std::size_t> log_capacity_{0};
  std::unique_ptr<Impl> impl_;
};

/// A block as a LogSpan; make one only while logging_enabled().
class ScopedSpan {
 public:
  ScopedSpan(Dispatcher& dispatcher, std::string name, std::string category,
             std::vector<std::pair<std::string, std::string>> arguments = {});
  ~ScopedSpan();
  ScopedSpan(const ScopedSpan&) = delete;
  ScopedSpan& operator=(const ScopedSpan&) = delete;

 private:
  Dispatcher& dispatcher_;
  LogSpan span_ = {};
  const std::uint64_t start_;  // ticks
};

}  // namespace xpuruntime
