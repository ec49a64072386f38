#include "xpuruntime/precision/precision.h"

#include <utility>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

/// One governed dtype for a whole problem: what its governed inputs can all be without loss.
DataType own_dtype(const Problem& problem) {
  Problem governed = problem;
  governed.inputs.clear();
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (is_governed(problem, i)) governed.inputs.push_back(problem.inputs[i]);
  }
  return promoted_dtype(governed.inputs.empty() ? problem : governed);
}

bool is_16_bit(DataType dtype) { return dtype == DataType::float16 || dtype == DataType::bfloat16; }

/// A default is not a demand: it narrows no float64 and trades neither 16-bit format for the other.
DataType by_default(DataType own, DataType wished) {
  if (!is_floating(own) || own == DataType::float64 || (is_16_bit(own) && is_16_bit(wished))) return own;
  return wished;
}

Precision demanded(DataType own, DataType wished, std::string_view who) {
  const DataType dtype = is_floating(own) && is_float_storage(wished) ? wished : own;
  std::string because = std::string(who) + " asks for " + std::string(to_string(wished));
  if (!is_float_storage(wished)) {
    because += ", but tensors can only be cast to a float type that they are stored in";
  } else if (!is_floating(own)) {
    because += ", but integers are never cast";
  }
  return {dtype, dtype, std::move(because), true};
}

Precision by_rule(const OpPrecisionRule& rule, const AmpConfig& config, DataType own, std::string_view who) {
  const DataType forward = rule.get_forward_dtype(config, own), backward = rule.get_backward_dtype(config, own);
  std::string because = std::string(who) + " asks for " + to_string(rule.forward());
  if (rule.backward_precision != OpPrecision::keep) because += " and backward " + to_string(rule.backward());
  if (!is_floating(own)) {
    because += ", but integers are never cast";
  } else if (forward == own && backward == own && rule.forward_precision != OpPrecision::keep) {
    because += ", and the inputs are " + std::string(to_string(own));
  }
  return {forward, backward, std::move(because), true};
}

Precision by_autocast(const Problem& problem, const Autocast& autocast, DataType own) {
  constexpr std::string_view names[] = {"autocast, by the user's rule for ", "autocast, by the default rule for ",
                                        "autocast, by the category of "};
  const std::string who = std::string(names[static_cast<std::size_t>(autocast.rules->source(problem.op))]) +
                          std::string(to_string(problem.op)) + ",";
  return by_rule(autocast.rules->rule(problem.op), autocast.config, own, who);
}

}  // namespace

bool is_governed(const Problem& problem, std::size_t input) {
  if (!is_floating(problem.inputs[input].dtype)) return false;
  const bool gradient = problem.direction == Direction::backward && input + 1 == problem.inputs.size();
  switch (op_info(problem.op).category) {
    case OpCategory::movement:
    case OpCategory::lookup:
      return false;
    case OpCategory::normalization:
    case OpCategory::loss:
      return input == 0 || gradient || (problem.op == OpId::kl_div && input == 1) ||
             (problem.op == OpId::cross_entropy && input == 1);
    default:
      break;
  }
  if (problem.op == OpId::attention) return input < 3 || gradient;
  if (problem.op == OpId::unscale) return false;  // always in the higher precision, by its own definition
  return true;
}

Precision resolve_precision(const Problem& problem, const PrecisionWishes& wishes) {
  const DataType own = own_dtype(problem);
  const std::string name(to_string(problem.op));
  if (op_info(problem.op).category == OpCategory::movement) {
    return {own, own, "the inputs are " + std::string(to_string(own)) + ", and " + name + " only moves them"};
  }
  if (problem.op == OpId::unscale) return {own, own, "unscale is computed in f32 or f64 whatever rules say"};
  if (wishes.explicit_dtype) return demanded(own, *wishes.explicit_dtype, "the call");
  if (wishes.hook != nullptr && *wishes.hook) {
    if (const auto dtype = (*wishes.hook)(problem)) return demanded(own, *dtype, "the precision hook");
  }
  if (wishes.policy_rule != nullptr) {
    const AmpConfig config =
        wishes.autocast != nullptr && wishes.autocast->on() ? wishes.autocast->config : AmpConfig();
    return by_rule(*wishes.policy_rule, config, own, "the policy's rule for " + name);
  }
  if (wishes.autocast != nullptr && wishes.autocast->on()) return by_autocast(problem, *wishes.autocast, own);
  if (wishes.policy_default) {
    const DataType dtype = by_default(own, *wishes.policy_default);
    Precision precision = demanded(own, *wishes.policy_default, "the policy's default");
    if (is_floating(own) && dtype != *wishes.policy_default) {
      precision.forward = precision.backward = dtype;
      precision.because += ", but a default does not make that of " + std::string(to_string(own));
    }
    return precision;
  }
  return {own, own, "the inputs are " + std::string(to_string(own))};
}

DataType governing_dtype(const Precision& precision, const Problem& problem) {
  return problem.direction == Direction::forward ? precision.forward : precision.backward;
}

Problem at_precision(const Problem& problem, DataType dtype) {
  std::vector<TensorSpec> inputs = problem.inputs;
  bool same = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_governed(problem, i) || inputs[i].dtype == dtype) continue;
    inputs[i] = make_spec(dtype, inputs[i].shape);
    same = false;
  }
  if (same) return problem;
  Problem changed = make_problem(problem.op, std::move(inputs), problem.attributes, problem.device, problem.direction);
  std::vector<TensorSpec> outputs = changed.outputs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (problem.outputs[i].dtype == outputs[i].dtype) outputs[i] = problem.outputs[i];
  }
  set_outputs(changed, std::move(outputs));
  changed.limits = problem.limits;
  return changed;
}

std::optional<DataType> next_lossless(DataType dtype) {
  switch (dtype) {
    case DataType::float8_e4m3:
    case DataType::float8_e5m2:
      return DataType::float16;
    case DataType::float16:
    case DataType::bfloat16:
    case DataType::tfloat32:
      return DataType::float32;
    case DataType::float32:
      return DataType::float64;
    default:
      return std::nullopt;
  }
}

}  // namespace xpuruntime
