#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "dispatch/prepared.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/select/select.h"

namespace xpuruntime {

/// Kernels that are not tried again on a problem: those that failed on it or that tuning found wrong, and those that
/// found only when they were prepared that they cannot run it. Kernels, not names: one that is registered anew under an
/// old name starts afresh.
class Quarantine {
 public:
  /// Says whether it was not in here before.
  bool add_failed(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel, const std::string& reason);
  void add_refused(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel, std::string reason);

  /// Those that must not be chosen for a problem, and are still registered.
  std::vector<Exclusion> exclusions(const SharedProblem& problem, const KernelRegistry& registry) const;
  /// Whether a kernel, as a plan holds it, failed on a problem.
  bool holds(const Problem& problem, const std::shared_ptr<const Kernel>& kernel) const;
  /// Those that failed, and are still registered.
  std::vector<QuarantinedPlan> failed(const KernelRegistry& registry) const;
  void clear();

 private:
  struct Item {
    std::shared_ptr<const Kernel> kernel;
    std::string reason;
    bool failed = false;
  };
  bool add(const SharedProblem& problem, Item item);

  mutable Mutex mutex_;
  std::unordered_map<SharedProblem, std::vector<Item>> items_;
};

}  // namespace xpuruntime
