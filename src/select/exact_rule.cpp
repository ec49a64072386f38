#include "xpuruntime/select/exact_rule.h"

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

}  // namespace

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
    if (!spec.contiguous) rule.when[place + "strides"] = equals(list_of(spec.strides));
  }
  for (const AttributeSpec& spec : op_info(problem.op).attributes) {
    rule.when["attributes." + std::string(spec.name)] = equals(attribute_value(problem.attributes, spec));
  }
  return rule;
}

}  // namespace xpuruntime
