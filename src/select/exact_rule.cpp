#include "xpuruntime/select/exact_rule.h"

#include <algorithm>
#include <limits>

#include "xpuruntime/core/op.h"

namespace xpuruntime {
namespace {

RuleTests equals(RuleValue value) { return {{Comparison::equal, {std::move(value)}}}; }

std::vector<std::int64_t> list_of(const Dims& dims) { return {dims.begin(), dims.end()}; }

RuleValue attribute_value(const Attributes& attributes, const AttributeSpec& spec) {
  switch (spec.kind) {
    case AttributeKind::boolean:
      return attributes.boolean(spec.name);
    case AttributeKind::integer:
      return attributes.integer(spec.name);
    case AttributeKind::real:
      return attributes.real(spec.name);
    case AttributeKind::integers:
      return attributes.list(spec.name);
    case AttributeKind::choice:
      return std::string(attributes.choice(spec.name));
    case AttributeKind::dtype:
      return std::string(to_string(attributes.data_type(spec.name)));
  }
  return false;
}

void add_limits(PolicyRule& rule, const Limits& limits) {
  rule.when["deterministic"] = equals(limits.deterministic);
  if (limits.threads) rule.when["threads"] = equals(std::int64_t{*limits.threads});
  if (limits.workspace_bytes) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    rule.when["workspace_limit_bytes"] = equals(static_cast<std::int64_t>(std::min(*limits.workspace_bytes, most)));
  }
}

}  // namespace

KernelPolicy with_exact_rules(KernelPolicy policy, std::vector<PolicyRule> rules) {
  // A limit that is not there cannot be asked for: the rule that asks for more comes first.
  std::stable_sort(rules.begin(), rules.end(),
                   [](const PolicyRule& a, const PolicyRule& b) { return a.when.size() > b.when.size(); });
  std::erase_if(policy.rules, [&](const PolicyRule& old) {
    return std::any_of(rules.begin(), rules.end(),
                       [&](const PolicyRule& rule) { return rule.op == old.op && rule.when == old.when; });
  });
  policy.rules.insert(policy.rules.begin(), rules.begin(), rules.end());
  return policy;
}

PolicyRule exact_rule(const Problem& problem, const std::string& kernel) {
  PolicyRule rule;
  rule.op = problem.op;
  rule.use = {kernel};
  rule.name = to_string(problem);
  rule.when["device.type"] = equals(std::string(to_string(problem.device.type)));
  rule.when["direction"] = equals(std::string(problem.direction == Direction::forward ? "forward" : "backward"));
  rule.when["inputs.count"] = equals(static_cast<std::int64_t>(problem.inputs.size()));
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const TensorSpec& spec = problem.inputs[i];
    const std::string place = "inputs." + std::to_string(i) + ".";
    rule.when[place + "dtype"] = equals(std::string(to_string(spec.dtype)));
    rule.when[place + "shape"] = equals(list_of(spec.shape));
    rule.when[place + "contiguous"] = equals(spec.contiguous);
    if (!spec.contiguous) rule.when[place + "strides"] = equals(list_of(spec.strides));
  }
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) {
    const std::string place = "outputs." + std::to_string(i) + ".";
    rule.when[place + "dtype"] = equals(std::string(to_string(problem.outputs[i].dtype)));
    rule.when[place + "contiguous"] = equals(problem.outputs[i].contiguous);
  }
  add_limits(rule, problem.limits);
  for (const AttributeSpec& spec : op_info(problem.op).attributes) {
    rule.when["attributes." + std::string(spec.name)] = equals(attribute_value(problem.attributes, spec));
  }
  return rule;
}

}  // namespace xpuruntime
