#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime {

struct CachedPlan;
class Plan;

/// For a call that is repeated with the same contents of some inputs: what its kernels made of these once for all runs
/// (Plan::with_constants). Safe for many threads that repeat the call. It must outlive their calls.
class HeldConstants {
 public:
  /// Told of each constant that a plan has made something of, and may not read again.
  using OnHeld = void (*)(const Tensor& constant);

  /// `is_constant`: by input.
  explicit HeldConstants(std::vector<bool> is_constant, OnHeld on_held = nullptr);
  ~HeldConstants();
  HeldConstants(const HeldConstants&) = delete;
  HeldConstants& operator=(const HeldConstants&) = delete;

  /// The plan to run in the place of one that was decided.
  const Plan& plan_for(const std::shared_ptr<CachedPlan>& decided, const Call& call) {
    const Made* made = latest_.load(std::memory_order_acquire);
    return made != nullptr && made->of == decided.get() ? *made->plan : make(decided, call);
  }

 private:
  struct Made {
    const CachedPlan* of = nullptr;
    const Plan* plan = nullptr;             // that one's own, where it makes nothing
    std::shared_ptr<CachedPlan> kept = {};  // or its address could be another's
    std::unique_ptr<const Plan> with_constants = {};
  };
  const Plan& make(const std::shared_ptr<CachedPlan>& decided, const Call& call);

  const std::vector<bool> is_constant_;
  const OnHeld on_held_;
  std::atomic<const Made*> latest_ = nullptr;
  LongMutex mutex_ = {};
  std::vector<std::unique_ptr<const Made>> all_ = {};  // another thread may still run one of them
};

}  // namespace xpuruntime
