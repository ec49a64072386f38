#include "dispatch/quarantine.h"

#include <algorithm>
#include <utility>

#include "registry/copying_kernel.h"

namespace xpuruntime {
namespace {

constexpr std::size_t most_problems = 4096;

/// A kernel that is wrong is wrong under all limits.
SharedProblem without_limits(Problem problem) {
  problem.limits = {};
  return SharedProblem(problem);
}

}  // namespace

bool Quarantine::add_failed(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                            const std::string& reason) {
  return add(without_limits(*problem), {registered_kernel(kernel), "quarantined: " + reason, true});
}

void Quarantine::add_refused(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                             std::string reason) {
  add(problem, {registered_kernel(kernel), std::move(reason)});
}

bool Quarantine::add(const SharedProblem& problem, Item item) {
  const std::lock_guard lock(mutex_);
  // A kernel that fails on every shape must not fill the memory; one that is forgotten fails once more.
  if (items_.size() >= most_problems && !items_.contains(problem)) items_.erase(items_.begin());
  auto& list = items_[problem];
  const bool known = std::any_of(list.begin(), list.end(), [&](const Item& i) { return i.kernel == item.kernel; });
  if (!known) list.push_back(std::move(item));
  return !known;
}

std::vector<Exclusion> Quarantine::exclusions(const SharedProblem& problem, const KernelRegistry& registry) const {
  std::vector<Exclusion> out;
  const std::lock_guard lock(mutex_);
  if (items_.empty()) return out;
  const KernelList kernels = registry.kernels(problem->op, problem->device.type);
  const auto add_those_of = [&](const SharedProblem& key) {
    const auto found = items_.find(key);
    if (found == items_.end()) return;
    for (const Item& item : found->second) {
      if (std::find(kernels.begin(), kernels.end(), item.kernel) != kernels.end())
        out.push_back({std::string(item.kernel->name()), item.reason});
    }
  };
  add_those_of(problem);
  if (problem->limits != Limits{}) add_those_of(without_limits(*problem));
  return out;
}

bool Quarantine::holds(const Problem& problem, const std::shared_ptr<const Kernel>& kernel) const {
  const std::lock_guard lock(mutex_);
  const auto found = items_.empty() ? items_.end() : items_.find(without_limits(problem));
  if (found == items_.end()) return false;
  const auto& registered = registered_kernel(kernel);
  return std::any_of(found->second.begin(), found->second.end(),
                     [&](const Item& item) { return item.failed && item.kernel == registered; });
}

std::vector<QuarantinedPlan> Quarantine::failed(const KernelRegistry& registry) const {
  const std::lock_guard lock(mutex_);
  std::vector<QuarantinedPlan> out;
  for (const auto& [problem, list] : items_) {
    const KernelList kernels = registry.kernels(problem->op, problem->device.type);
    for (const Item& item : list) {
      const bool is_here = std::find(kernels.begin(), kernels.end(), item.kernel) != kernels.end();
      if (item.failed && is_here) out.push_back({*problem, std::string(item.kernel->name()), item.reason});
    }
  }
  return out;
}

void Quarantine::clear() {
  const std::lock_guard lock(mutex_);
  items_.clear();
}

}  // namespace xpuruntime
