#include "xpuruntime/select/exact_rule.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <type_traits>

#include "select/rule_terms.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

/// A fact as a rule's value. Lists of texts are a device's, and no exact rule asks for those.
RuleValue value_of(const Fact& fact) {
  return std::visit(
      [](const auto& value) -> RuleValue {
        if constexpr (std::is_constructible_v<RuleValue, decltype(value)>) {
          return value;
        } else {
          fail(ErrorCode::invalid_argument, "exact_rule", "a key has no single value; report this");
        }
      },
      fact);
}

std::vector<std::string> keys_of(const Problem& problem) {
  std::vector<std::string> keys = {"direction", "inputs.count", "deterministic"};
  if (problem.limits.threads) keys.push_back("threads");
  if (problem.limits.workspace_bytes) keys.push_back("workspace_limit_bytes");
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const std::string place = "inputs." + std::to_string(i) + ".";
    for (const char* key : {"dtype", "shape", "contiguous"}) keys.push_back(place + key);
    if (!problem.inputs[i].contiguous) keys.push_back(place + "strides");
  }
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    for (const char* key : {"dtype", "contiguous"}) keys.push_back("outputs." + std::to_string(i) + "." + key);
  }
  for (const AttributeSpec& spec : op_info(problem.op).attributes)
    keys.push_back("attributes." + std::string(spec.name));
  return keys;
}

}  // namespace

KernelPolicy with_exact_rules(KernelPolicy policy, std::vector<PolicyRule> rules) {
  // A limit that is not there cannot be asked for: the rule that asks for more comes first.
  std::stable_sort(rules.begin(), rules.end(),
                   [](const PolicyRule& a, const PolicyRule& b) { return a.when.size() > b.when.size(); });
  const auto before = [](const PolicyRule* a, const PolicyRule* b) {
    return std::tie(a->op, a->when) < std::tie(b->op, b->when);
  };
  std::set<const PolicyRule*, decltype(before)> asked(before);
  for (const PolicyRule& rule : rules) asked.insert(&rule);
  std::vector<PolicyRule> all = rules;
  for (const PolicyRule& old : policy.rules) {
    if (!asked.contains(&old)) all.push_back(old);
  }
  policy.rules = std::move(all);
  return policy;
}

PolicyRule exact_rule(const Problem& problem, const std::string& kernel, const std::string& plan) {
  PolicyRule rule;
  rule.op = problem.op;
  rule.use = {kernel};
  rule.plan = plan;
  rule.name = to_string(problem);
  DeviceProfile device;
  device.type = problem.device.type;
  const auto ask = [&](const std::string& key) {
    const Fact fact = parse_term(problem.op, key).read(problem, device);
    rule.when[key] = {{Comparison::equal, {value_of(fact)}}};
  };
  ask("device.type");
  for (const std::string& key : keys_of(problem)) ask(key);
  return rule;
}

}  // namespace xpuruntime
