#include "xpuruntime/dispatch/held_constants.h"

#include <algorithm>
#include <mutex>
#include <new>

#include "dispatch/prepared.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {

HeldConstants::HeldConstants(std::vector<bool> is_constant, OnHeld on_held)
    : is_constant_(std::move(is_constant)), on_held_(on_held) {}
HeldConstants::~HeldConstants() = default;

const Plan& HeldConstants::make(const std::shared_ptr<CachedPlan>& decided, const Call& call) {
  const std::lock_guard lock(mutex_);
  auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& made) { return made->of == decided.get(); });
  if (found == all_.end()) {
    std::vector<const Tensor*> constants(call.inputs.size(), nullptr);
    for (std::size_t i = 0; i < std::min(constants.size(), is_constant_.size()); ++i) {
      if (is_constant_[i]) constants[i] = call.inputs[i];
    }
    auto made = std::make_unique<Made>();
    made->of = decided.get();
    made->kept = decided;
    try {
      made->with_constants = decided->plan->with_constants(constants);
    } catch (const std::bad_alloc&) {  // it runs as well without
    } catch (const Error& error) {
      if (error.code() != ErrorCode::out_of_memory) throw;
    }
    made->plan = made->with_constants != nullptr ? made->with_constants.get() : decided->plan.get();
    if (made->with_constants != nullptr && on_held_ != nullptr) {
      for (const Tensor* constant : constants) {
        if (constant != nullptr) on_held_(*constant);
      }
    }
    found = all_.insert(all_.end(), std::move(made));
  }
  latest_.store(found->get(), std::memory_order_release);
  return *(*found)->plan;
}

}  // namespace xpuruntime
