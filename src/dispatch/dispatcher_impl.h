#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "dispatch/log_book.h"
#include "dispatch/prepared.h"
#include "dispatch/quarantine.h"
#include "dispatch/scope_table.h"
#include "dispatch/thread_registry.h"
#include "dispatch/tuned_here.h"
#include "tune/tick_clock.h"
#include "xpuruntime/cache/op_cache.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {

/// A function that may be set and taken away while others call it: who calls it holds it, and no lock, until it
/// returns.
template <class Function>
class Hook {
 public:
  /// An empty function takes it away.
  void set(Function function) {
    auto next = function ? std::make_shared<const Function>(std::move(function)) : nullptr;
    const std::lock_guard lock(mutex_);
    held_.swap(next);  // the old one ends after the lock
  }
  std::shared_ptr<const Function> get() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Function> held_;
};

inline constexpr const char* device_is_lost =
    "; this process can no longer use this device: start a new process. Other devices keep working";

/// A kernel that failed on a problem in the call that is running, where that is no reason to quarantine it.
struct PassedOver {
  SharedProblem problem;
  Exclusion exclusion;
};

/// What all threads share. Touched only off the hot path. Each part has a lock of its own.
struct Dispatcher::Impl {
  Impl(KernelRegistry& kernel_registry, std::uint64_t id);

  using Chosen = std::pair<Decision, std::shared_ptr<CachedPlan>>;

  // --- decide.cpp: from a problem to something that runs ---
  ScopePtr make_scope(const KernelPolicy& policy, const Autocast& autocast, const std::optional<LockUse>& lock);
  std::shared_ptr<Prepared> prepare(const Asked& asked, const Scope& scope, std::uint64_t stamp);
  Prepared make(const Asked& asked, const Scope& scope, std::uint64_t stamp,
                std::span<const PassedOver> passed_over = {});
  /// The precision, the choice and its plan, past kernels that fail to prepare. The plan is null where nothing can run
  /// the problem.
  Chosen decide(const Asked& asked, const Scope& scope, std::span<const PassedOver> passed_over = {},
                bool every_workspace = false);
  /// Who requests a precision of the op, for as long as the hook is held.
  PrecisionRequests requests_for(const Asked& asked, const Scope& scope, const PrecisionHook* current) const;
  Chosen decide_at(const SharedProblem& problem, const Scope& scope, std::span<const PassedOver> passed_over,
                   bool every_workspace);
  /// What follows from the exception being handled, which a kernel threw in prepare: it is quarantined, refused, or
  /// excluded for now. Where it refuses a plan that was named, that is noted in `plans_refused`.
  void set_aside(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                 std::vector<Exclusion>* plans_refused, std::vector<Exclusion>& for_now);
  /// The plan with this token, or the kernel's own choice where it is empty.
  std::shared_ptr<CachedPlan> plan_for(const SharedProblem& problem, std::shared_ptr<const Kernel> kernel,
                                       std::string_view token);
  CachedPlan make_plan(const Problem& problem, std::shared_ptr<const Kernel> kernel, std::string_view token) const;
  /// Which of a kernel's plans a selection names, where it has several.
  std::string_view token_of(const SharedProblem& problem, const Selection& selection) const;
  /// Throws where earlier work lost the device: then a kernel that fails on it is not at fault. Waits.
  void check_not_lost(Device device) const;
  /// Ends a plan, once the work that reads it is done.
  void let_go(CachedPlan& cached);
  /// What a recorded call uses stays for as long as its graph, whatever is evicted meanwhile.
  void keep_with_graph(std::shared_ptr<Prepared> prepared, const Call& call, Stream stream);

  // --- measured.cpp: what was measured, and what a lock holds ---
  std::shared_ptr<const Measurements> frozen_measurements();
  /// Measures a problem now, where a scope wants times, has none for it, and tuning is on; null where not. `why_not`
  /// is what the tuner says where it could not.
  std::shared_ptr<const Measurements> tuned_now(const SharedProblem& problem, const Scope& scope,
                                                const Selection& untuned, std::string& why_not);
  /// The lock that a scope is under; nothing where calls in it are refused (LockHold).
  std::optional<LockUse> lock_over(const Scope& scope) const;
  bool refuses_unlocked() const { return lock_holds > 0 && process_lock.lock == nullptr; }  // under the mutex
  /// Why the plan that a lock's kernel made is not the one that the lock holds; empty: it is.
  std::string breach_of_lock(const Problem& problem, const KernelLock& lock, const Decision& decision);

  void tell(const std::shared_ptr<const DecisionRecord>& record) const;
  /// Whether what this thread calls on a device now is only recorded.
  bool capturing(Device device) const;

  KernelRegistry& registry;
  std::shared_ptr<ThreadRegistry> threads;
  const std::shared_ptr<RecordArchive> archive;
  ScopeTable scopes;
  ScopePtr base_scope;        // guarded by mutex
  LockUse process_lock = {};  // guarded by mutex
  int lock_holds = 0;         // guarded by mutex

  // Before the plans, which end here when they go.
  Mutex deferred_mutex;
  std::vector<CachedPlan> deferred;  // evicted during a capture, when nothing may be waited for
  OpCache<PlanKey, CachedPlan> plans;
  struct InGraphs;
  const std::shared_ptr<InGraphs> in_graphs;
  LRUCache<DecisionKey, Prepared> decisions;
  std::atomic<std::uint32_t> decisions_generation{0};
  std::atomic<std::uint64_t> decisions_made{0};
  std::atomic<Strategy> default_strategy{Strategy::first_supported};

  Quarantine quarantine;
  LogBook log;
  TunedHere tuned;
  Hook<PrecisionHook> precision_hook;
  Hook<MeasuredSource> source;  // none: the statistics of this dispatcher
  Hook<TuneHook> tuner;
  Hook<RevalidateHook> revalidator;
  Hook<DecisionHook> decision_hook;
  Hook<CallHook> call_hook;

  mutable Mutex mutex;  // of the base scope and the process's lock
};

XRT_ALWAYS_INLINE ThreadState& Dispatcher::thread_state() const {
  if (last_state.dispatcher_id == id_) [[likely]]
    return *last_state.state;
  return state_of_this_thread(id_, impl_->threads);
}

}  // namespace xpuruntime
