#include "dispatch/quarantine.h"

#include <algorithm>
#include <utility>

#include "registry/copying_kernel.h"

namespace xpuruntime {
namespace {

constexpr std::size_t most_problems = 4096;

}  // namespace

void Quarantine::add_failed(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                            const std::string& reason) {
  add(problem, {registered_kernel(kernel), "quarantined: " + reason, true});
}

void Quarantine::add_refused(const SharedProblem& problem, const std::shared_ptr<const Kernel>& kernel,
                             std::string reason) {
  add(problem, {registered_kernel(kernel), std::move(reason)});
}

void Quarantine::add(const SharedProblem& problem, Item item) {
  const std::lock_guard lock(mutex_);
  // A kernel that fails on every shape must not fill the memory; one that is forgotten fails once more.
  if (items_.size() >= most_problems && !items_.contains(problem)) items_.erase(items_.begin());
  auto& list = items_[problem];
  const bool known = std::any_of(list.begin(), list.end(), [&](const Item& i) { return i.kernel == item.kernel; });
  if (!known) list.push_back(std::move(item));
}

std::vector<Exclusion> Quarantine::exclusions(const SharedProblem& problem, const KernelList& kernels) const {
  std::vector<Exclusion> out;
  const std::lock_guard lock(mutex_);
  const auto found = items_.empty() ? items_.end() : items_.find(problem);
  if (found == items_.end()) return out;
  for (const Item& item : found->second) {
    if (std::find(kernels.begin(), kernels.end(), item.kernel) != kernels.end())
      out.push_back({std::string(item.kernel->name()), item.reason});
  }
  return out;
}

std::vector<QuarantinedPlan> Quarantine::failed() const {
  const std::lock_guard lock(mutex_);
  std::vector<QuarantinedPlan> out;
  for (const auto& [problem, list] : items_) {
    for (const Item& item : list) {
      if (item.failed) out.push_back({*problem, std::string(item.kernel->name()), item.reason});
    }
  }
  return out;
}

void Quarantine::clear() {
  const std::lock_guard lock(mutex_);
  items_.clear();
}

}  // namespace xpuruntime
