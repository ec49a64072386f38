#include "xpuruntime/select/kernel_selector.h"

#include <algorithm>
#include <utility>

#include "select/capability_table.h"
#include "select/kernel_probe.h"
#include "select/performance_table.h"
#include "select/unavailable.h"

namespace xpuruntime {

KernelSelector::KernelSelector(KernelRegistry& registry, Device device)
    : registry_(registry),
      device_(device),
      rules_(std::make_shared<const RuleMap>()),
      capabilities_(std::make_unique<CapabilityTable>()),
      probe_(std::make_unique<KernelProbe>(registry, device)),
      performance_(std::make_unique<PerformanceTable>()) {}

KernelSelector::~KernelSelector() = default;

std::uint64_t KernelSelector::register_rule(OpId op, Condition condition, std::string_view kernel, int priority,
                                            std::string_view name) {
  if (!condition) {
    fail(ErrorCode::invalid_argument, "register_rule",
         "the condition is empty; pass a function of problem and profile");
  }
  check_kernel_name("register_rule", op, kernel);
  Rule rule{op, std::move(condition), std::string(kernel), priority, std::string(name), next_id_++};
  if (rule.name.empty()) rule.name = "rule " + std::to_string(rule.id);
  const std::uint64_t id = rule.id;
  const std::lock_guard lock(mutex_);
  auto rules = std::make_shared<RuleMap>(*rules_);
  auto& list = (*rules)[op];
  const auto after = std::find_if(list.begin(), list.end(), [&](const Rule& r) { return r.priority < priority; });
  list.insert(after, std::move(rule));
  rules_ = std::move(rules);
  registry_.invalidate();
  return id;
}

bool KernelSelector::unregister_rule(std::uint64_t id) {
  const std::lock_guard lock(mutex_);
  auto rules = std::make_shared<RuleMap>(*rules_);
  std::size_t removed = 0;
  for (auto& [op, list] : *rules) removed += std::erase_if(list, [&](const Rule& rule) { return rule.id == id; });
  if (removed == 0) return false;
  rules_ = std::move(rules);
  registry_.invalidate();
  return true;
}

std::vector<Rule> KernelSelector::rules(OpId op) const {
  const std::lock_guard lock(mutex_);
  const auto found = rules_->find(op);
  return found == rules_->end() ? std::vector<Rule>{} : found->second;
}

Selection KernelSelector::select(const Problem& problem, const KernelPolicy& policy, const Measurements* measurements,
                                 std::span<const Exclusion> exclusions) const {
  Selection selection = select_checked(checked(problem), policy, measurements, exclusions);
  selection.decision.precision = resolve_precision(selection.decision.problem, {});
  return selection;
}

Selection KernelSelector::select_checked(const Problem& problem, const KernelPolicy& policy,
                                         const Measurements* measurements, std::span<const Exclusion> exclusions,
                                         bool every_workspace, const LockUse* lock_in_force) const {
  if (problem.device != device_) {
    fail(ErrorCode::invalid_argument, "KernelSelector::select",
         "the problem is on " + to_string(problem.device) + ", this selector is for " + to_string(device_) +
             "; use that device's selector");
  }
  std::shared_ptr<const RuleMap> rules;
  {
    const std::lock_guard lock(mutex_);
    rules = rules_;
  }
  const auto own = rules->find(problem.op);
  const KernelList kernels = registry_.kernels(problem.op, problem.device.type);
  const KernelList copy_kernels = registry_.kernels(OpId::copy, problem.device.type);
  return xpuruntime::select({problem, registry_.devices().profile(device_), kernels, policy,
                             own == rules->end() ? std::span<const Rule>{} : std::span<const Rule>(own->second),
                             builtin_rules(), measurements, exclusions, every_workspace, lock_in_force, false,
                             copy_kernels});
}

}  // namespace xpuruntime
