#include "xpuruntime/precision/op_precision_rule.h"

#include <vector>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view precision_names[] = {"higher", "lower", "keep", "custom"};

void check_requested(const OpPrecisionRule& rule, std::string_view direction, OpPrecision precision,
                     const std::optional<DataType>& custom) {
  const std::string place = std::string(to_string(rule.op)) + ", " + std::string(direction) + ": ";
  if (precision > OpPrecision::custom) {
    fail(
        ErrorCode::invalid_argument, "OpPrecisionRule",
        place + std::to_string(static_cast<int>(precision)) + " is not a precision; use lower, higher, keep or custom");
  }
  if (precision == OpPrecision::custom && !custom) {
    fail(ErrorCode::invalid_argument, "OpPrecisionRule",
         place + "the precision is custom and no dtype is given; give one, or use lower, higher or keep");
  }
  if (precision != OpPrecision::custom && custom) {
    fail(ErrorCode::invalid_argument, "OpPrecisionRule",
         place + "a custom dtype is given with the precision " + std::string(to_string(precision)) +
             "; make the precision custom, or leave the dtype out");
  }
  if (custom && !is_float_storage(*custom)) {
    fail(ErrorCode::invalid_argument, "OpPrecisionRule",
         place + std::string(to_string(*custom)) +
             " is not a float type that tensors can have; give f32, f16, bf16 or f64");
  }
}

}  // namespace

void AmpConfig::check() const {
  if (target_precision != DataType::float16 && target_precision != DataType::bfloat16) {
    fail(ErrorCode::invalid_argument, "AmpConfig",
         "the target precision " + std::string(to_string(target_precision)) +
             " is not a low precision; give f16 or bf16");
  }
  if (higher_precision != DataType::float32 && higher_precision != DataType::float64) {
    fail(ErrorCode::invalid_argument, "AmpConfig",
         "the higher precision " + std::string(to_string(higher_precision)) + " is not high; give f32 or f64");
  }
}

std::string_view to_string(OpPrecision precision) { return precision_names[static_cast<std::size_t>(precision)]; }

RequestedPrecision parse_requested_precision(std::string_view text) {
  for (const OpPrecision precision : {OpPrecision::higher, OpPrecision::lower, OpPrecision::keep}) {
    if (text == to_string(precision)) return {precision};
  }
  const auto dtype = find_data_type(text);
  if (dtype && is_float_storage(*dtype)) return {OpPrecision::custom, *dtype};
  if (dtype) {
    fail(ErrorCode::invalid_argument, "parse_requested_precision",
         std::string(to_string(*dtype)) +
             " is not a float type that tensors can have; give lower, higher, keep, f32, "
             "f16, bf16 or f64");
  }
  std::vector<std::string_view> known = {"higher", "lower", "keep"};
  for (int i = 0; i < data_type_count; ++i) {
    if (const auto own = static_cast<DataType>(i); is_float_storage(own)) known.push_back(to_string(own));
  }
  fail_unknown("parse_requested_precision", "precision", text, known);
}

std::string to_string(const RequestedPrecision& requested) {
  return std::string(requested.precision == OpPrecision::custom ? to_string(requested.custom)
                                                                : to_string(requested.precision));
}

DataType resolve(const RequestedPrecision& requested, const AmpConfig& config, DataType input) {
  if (!config.enabled || !is_floating(input)) return input;
  switch (requested.precision) {
    case OpPrecision::custom:
      return requested.custom;
    case OpPrecision::higher:
      return input == DataType::float64 ? input : config.higher_precision;
    case OpPrecision::lower:
      return input == DataType::float32 || input == DataType::tfloat32 ? config.target_precision : input;
    case OpPrecision::keep:
      break;
  }
  return input;
}

OpPrecisionRule OpPrecisionRule::make(OpId op, const RequestedPrecision& forward, const RequestedPrecision& backward,
                                      int priority) {
  OpPrecisionRule rule{
      .op = op, .forward_precision = forward.precision, .backward_precision = backward.precision, .priority = priority};
  if (forward.precision == OpPrecision::custom) rule.custom_forward_dtype = forward.custom;
  if (backward.precision == OpPrecision::custom) rule.custom_backward_dtype = backward.custom;
  return rule;
}

RequestedPrecision OpPrecisionRule::forward() const {
  return {forward_precision, custom_forward_dtype.value_or(DataType::float32)};
}

RequestedPrecision OpPrecisionRule::backward() const {
  return {backward_precision, custom_backward_dtype.value_or(DataType::float32)};
}

DataType OpPrecisionRule::get_forward_dtype(const AmpConfig& config, DataType input) const {
  return resolve(forward(), config, input);
}

DataType OpPrecisionRule::get_backward_dtype(const AmpConfig& config, DataType input) const {
  if (backward_precision == OpPrecision::keep) return get_forward_dtype(config, input);
  return resolve(backward(), config, input);
}

void OpPrecisionRule::check() const {
  check_requested(*this, "forward", forward_precision, custom_forward_dtype);
  check_requested(*this, "backward", backward_precision, custom_backward_dtype);
}

}  // namespace xpuruntime
