#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "dispatch/async_log.h"
#include "dispatch/prepared.h"
#include "dispatch/scope_table.h"
#include "dispatch/thread_registry.h"
#include "tune/tick_clock.h"
#include "xpuruntime/cache/op_cache.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {

/// A kernel that failed on a problem in the call that is running, where that is no reason to quarantine it.
struct PassedOver {
  SharedProblem problem;
  Exclusion exclusion;
};

/// What all threads share. Touched only off the hot path.
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
  /// Who wishes for a precision of the op, for as long as the hook is held.
  PrecisionWishes wishes_for(const Asked& asked, const Scope& scope, const PrecisionHook* current) const;
  Chosen decide_at(const SharedProblem& problem, const Scope& scope, std::span<const PassedOver> passed_over,
                   bool every_workspace);
  /// The casts that lead from one problem to the other and back, with their kernels. Returns which one has none and
  /// why; empty: all have.
  std::string add_casts(const Problem& asked, const Scope& scope, Decision& decision);
  std::shared_ptr<CachedPlan> plan_for(const SharedProblem& problem, std::shared_ptr<const Kernel> kernel);
  void quarantine(const SharedProblem& problem, std::shared_ptr<const Kernel> kernel, const std::string& reason);
  std::vector<Exclusion> exclusions_of(const SharedProblem& problem);
  std::shared_ptr<const PrecisionHook> current_hook() const;

  // --- measured.cpp: what was measured, and what a lock holds ---
  std::shared_ptr<const Measurements> frozen_measurements();
  /// Measures a problem now, where a scope wants times, has none for it, and tuning is on; null where not.
  std::shared_ptr<const Measurements> tuned_now(const SharedProblem& problem, const Scope& scope,
                                                const Selection& untuned);
  /// The lock that a scope is under; nothing where calls in it are refused (LockHold).
  std::optional<LockUse> lock_over(const Scope& scope) const;
  bool refuses_unlocked() const { return lock_holds > 0 && process_lock.lock == nullptr; }  // under the mutex
  /// Why the plan that a lock's kernel made is not the one that the lock holds; empty: it is.
  std::string breach_of_lock(const Problem& problem, const KernelLock& lock, const Decision& decision);

  // --- observe.cpp ---
  LogRing& make_ring(ThreadState& state, std::size_t capacity);
  void keep_ended_logs(std::size_t capacity);
  void collect_statistics();
  void tell(const std::shared_ptr<const DecisionRecord>& record);

  KernelRegistry& registry;
  std::shared_ptr<ThreadRegistry> threads;
  const std::shared_ptr<RecordArchive> archive;
  ScopeTable scopes;
  ScopePtr base_scope;        // guarded by mutex
  LockUse process_lock = {};  // guarded by mutex
  int lock_holds = 0;         // guarded by mutex

  OpCache<PlanKey, CachedPlan> plans;
  LRUCache<DecisionKey, Prepared> decisions;
  std::atomic<std::uint32_t> decisions_generation{0};
  std::atomic<std::uint64_t> decisions_made{0};
  std::atomic<Strategy> default_strategy{Strategy::first_supported};

  mutable Mutex mutex;
  std::shared_ptr<const PrecisionHook> hook;
  std::shared_ptr<const MeasuredSource> source;  // null: the statistics of this dispatcher
  std::shared_ptr<const TuneHook> tuner;
  std::shared_ptr<const RevalidateHook> revalidator;
  std::shared_ptr<const DecisionHook> decision_hook;
  std::shared_ptr<const CallHook> call_hook;
  std::unordered_map<SharedProblem, std::shared_ptr<const Measurements>> tuned;  // by the tuner, in this process
  std::uint32_t tuned_generation = 0;                                            // of the kernels that it raced
  /// Kernels, not names: one that is registered anew under an old name starts afresh.
  struct Failure {
    std::shared_ptr<const Kernel> kernel;
    std::string reason;
  };
  std::unordered_map<SharedProblem, std::vector<Failure>> quarantined;
  std::vector<std::pair<std::uint64_t, std::shared_ptr<LogRing>>> rings;  // thread number, its log
  std::deque<std::pair<std::uint64_t, LogRing::Item>> ended;              // what ended threads logged, oldest first
  std::uint64_t ended_dropped = 0;

  AsyncLog async_log;
};

XRT_ALWAYS_INLINE ThreadState& Dispatcher::thread_state() const {
  if (last_state.dispatcher_id == id_) [[likely]]
    return *last_state.state;
  return state_of_this_thread(id_, impl_->threads);
}

}  // namespace xpuruntime
