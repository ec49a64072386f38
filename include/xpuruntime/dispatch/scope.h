#pragma once

#include <cstdint>
#include <memory>

#include "xpuruntime/select/policy.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

class Dispatcher;

/// What is in force on a thread: an immutable, interned snapshot. Equal policies give the same scope, so the decision
/// table compares one number.
struct Scope {
  std::uint32_t id = 0;
  KernelPolicy policy = {};
  /// Frozen when the scope was made, and only for strategies that look at times.
  std::shared_ptr<const Measurements> measurements = {};
};

using ScopePtr = std::shared_ptr<const Scope>;

/// Layers a policy over the one in force on this thread, for a block; the old one is back afterwards, also on
/// exceptions. Destroy guards in the reverse order of their making, on the thread that made them.
class ScopedPolicy {
 public:
  ScopedPolicy(Dispatcher& dispatcher, const KernelPolicy& policy);
  /// Enters a scope that another thread captured with Dispatcher::current_scope.
  ScopedPolicy(Dispatcher& dispatcher, ScopePtr scope);
  ~ScopedPolicy();
  ScopedPolicy(const ScopedPolicy&) = delete;
  ScopedPolicy& operator=(const ScopedPolicy&) = delete;

 private:
  Dispatcher& dispatcher_;
  ScopePtr previous_;
};

}  // namespace xpuruntime
