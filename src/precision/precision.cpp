#include "xpuruntime/precision/precision.h"

#include <utility>

#include "core/forward_call.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

/// Whether it does not say where to read or write.
bool is_value(const Problem& problem, std::size_t input) {
  const InputValues values = input_spec(op_info(problem.op), input).values;
  return is_floating(problem.inputs[input].dtype) || (values != InputValues::place && values != InputValues::index);
}

/// One governed dtype for a whole problem: what its governed inputs can all be without loss. Where none is, what all
/// can be that are not places.
DataType own_dtype(const Problem& problem) {
  const auto those = [&](bool (*counts)(const Problem&, std::size_t)) {
    std::vector<TensorSpec> specs;
    specs.reserve(problem.inputs.size());
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
      if (counts(problem, i)) specs.push_back(problem.inputs[i]);
    }
    return specs;
  };
  if (const auto governed = those(is_governed); !governed.empty()) return promote(governed);
  const auto values = those(is_value);
  return promote(values.empty() ? problem.inputs : values);
}

bool is_16_bit(DataType dtype) { return dtype == DataType::float16 || dtype == DataType::bfloat16; }

/// The dtype, unless one 16-bit format would become the other: then what holds all inputs without loss.
DataType kept_apart(const Problem& problem, DataType own, DataType dtype) {
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const DataType input = problem.inputs[i].dtype;
    if (is_16_bit(dtype) && is_16_bit(input) && input != dtype && is_governed(problem, i)) return own;
  }
  return dtype;
}

DataType resolve_for(const Problem& problem, const RequestedPrecision& requested, const AmpConfig& config,
                     DataType own) {
  const DataType dtype = resolve(requested, config, own);
  return requested.precision == OpPrecision::custom ? dtype : kept_apart(problem, own, dtype);
}

Precision demanded(DataType own, DataType requested, std::string_view who) {
  const DataType dtype = is_floating(own) && is_float_storage(requested) ? requested : own;
  std::string because = std::string(who) + " asks for " + std::string(to_string(requested));
  if (!is_float_storage(requested)) {
    because += ", but tensors can only be cast to a float type that they are stored in";
  } else if (!is_floating(own)) {
    because += ", but integers are never cast";
  }
  return {dtype, dtype, std::move(because), true};
}

/// A default is not a demand: it narrows no float64.
Precision by_default(const Problem& problem, DataType requested, DataType own) {
  Precision precision = demanded(own, requested, "the policy's default");
  const DataType dtype = own == DataType::float64 ? own : kept_apart(problem, own, precision.forward);
  if (dtype == precision.forward) return precision;
  precision.forward = precision.backward = dtype;
  precision.because += ", but a default does not convert these inputs, which stay " + std::string(to_string(own));
  return precision;
}

/// What there is to add where the dtype is not the requested one.
std::string remark(const RequestedPrecision& requested, const AmpConfig& config, DataType own, DataType dtype) {
  if (!is_floating(own)) return ", but integers are never cast";
  if (dtype != resolve(requested, config, own)) {
    return ", but no 16-bit format is made the other, so " + std::string(to_string(dtype));
  }
  const bool changes = requested.precision != OpPrecision::keep && dtype == own;
  return changes ? ", and the inputs are " + std::string(to_string(own)) : "";
}

Precision by_autocast(const Problem& problem, const Autocast& autocast, DataType own) {
  constexpr std::string_view names[] = {"autocast, by the user's rule for ", "autocast, by the default rule for ",
                                        "autocast, by the category of "};
  const OpPrecisionRule rule = autocast.rules->rule(problem.op);
  const bool follows = rule.backward_precision == OpPrecision::keep;
  const DataType forward = resolve_for(problem, rule.forward(), autocast.config, own);
  const DataType backward = follows ? forward : resolve_for(problem, rule.backward(), autocast.config, own);
  std::string because = std::string(names[static_cast<std::size_t>(autocast.rules->source(problem.op))]) +
                        std::string(to_string(problem.op)) + ", asks for " + to_string(rule.forward());
  if (!follows) because += " and backward " + to_string(rule.backward());
  if (follows || problem.direction == Direction::forward) {
    because += remark(rule.forward(), autocast.config, own, forward);
  } else {
    because += remark(rule.backward(), autocast.config, own, backward);
  }
  return {forward, backward, std::move(because), true};
}

/// The policy's requests over what would hold without them.
Precision by_policy(const Problem& problem, const DirectionPrecisions& policy, const AmpConfig& config, DataType own,
                    const Precision& otherwise) {
  const bool follows = !policy.backward || policy.backward->precision == OpPrecision::keep;
  Precision out = otherwise;
  out.requested = true;
  std::string asks = "the policy's rule for " + std::string(to_string(problem.op)) + " asks for ";
  if (policy.forward) {
    out.forward = out.backward = resolve_for(problem, *policy.forward, config, own);
    asks += to_string(*policy.forward);
  } else if (follows) {
    out.backward = out.forward;
  }
  if (!follows) {
    out.backward = resolve_for(problem, *policy.backward, config, own);
    asks += (policy.forward ? " and backward " : "backward ") + to_string(*policy.backward);
  }
  if (policy.forward) {
    out.because = asks + remark(*policy.forward, config, own, out.forward);
  } else if (!follows) {
    out.because = otherwise.because + "; " + asks;
  }
  return out;
}

}  // namespace

bool is_governed(const Problem& problem, std::size_t input) {
  if (!is_floating(problem.inputs[input].dtype)) return false;
  const OpInfo& info = op_info(problem.op);
  const bool gradient = problem.direction == Direction::backward && input + 1 == problem.inputs.size();
  // The gradient of the output is computed with wherever anything is.
  return input_spec(info, gradient ? 0 : input).follows_precision;
}

Precision requested_precision(const Problem& problem, const PrecisionRequests& requests) {
  const DataType own = own_dtype(problem);
  if (requests.explicit_dtype) return demanded(own, *requests.explicit_dtype, "the call");
  if (requests.hook != nullptr && *requests.hook) {
    if (const auto dtype = (*requests.hook)(problem)) return demanded(own, *dtype, "the precision hook");
  }
  const bool casting = requests.autocast != nullptr && requests.autocast->on();
  // A lookup computes nothing: a wider result would hold the same values, and fast kernels copy rows.
  const bool keeps = casting && op_info(problem.op).category == OpCategory::lookup &&
                     requests.autocast->rules->source(problem.op) != RuleSource::user;
  Precision precision{own, own, "the inputs are " + std::string(to_string(own))};
  if (casting && !keeps) {
    precision = by_autocast(problem, *requests.autocast, own);
  } else if (requests.policy_default && !casting) {
    precision = by_default(problem, *requests.policy_default, own);
  }
  if (requests.policy_rule == nullptr) return precision;
  return by_policy(problem, *requests.policy_rule, casting ? requests.autocast->config : AmpConfig(), own, precision);
}

Precision resolve_precision(const Problem& problem, const PrecisionRequests& requests) {
  const OpInfo& info = op_info(problem.op);
  if (input_spec(info, 0).follows_precision) return requested_precision(problem, requests);
  const DataType own = own_dtype(problem);
  const std::string name(info.name);
  const std::string inputs = "the inputs are " + std::string(to_string(own)) + ", and " + name;
  switch (info.category) {
    case OpCategory::movement:
      return {own, own, inputs + " only moves them"};
    case OpCategory::lookup:
      return {own, own, inputs + " only looks them up"};
    default:
      return {own, own, name + " takes its inputs as they are, whatever rules say"};
  }
}

DataType governing_dtype(const Precision& precision, const Problem& problem) {
  return problem.direction == Direction::forward ? precision.forward : precision.backward;
}

Problem at_precision(const Problem& problem, DataType dtype, bool cast_outputs) {
  std::vector<TensorSpec> inputs = problem.inputs;
  bool same = true;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!is_governed(problem, i) || inputs[i].dtype == dtype) continue;
    inputs[i] = make_spec(dtype, inputs[i].shape);
    same = false;
  }
  if (same && !cast_outputs) return problem;
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
