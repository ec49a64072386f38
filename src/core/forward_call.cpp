#include "core/forward_call.h"

#include <algorithm>

#include "core/names.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

std::string input_text(std::size_t input, const TensorSpec& spec) {
  return "input " + std::to_string(input) + ", " + to_string(spec) + ",";
}

// Narrowest first. The first that holds all is the answer, so the order of the inputs plays no part.
constexpr DataType promotion_order[] = {
    DataType::float8_e4m3, DataType::float8_e5m2, DataType::float16, DataType::bfloat16, DataType::tfloat32,
    DataType::float32,     DataType::float64,     DataType::boolean, DataType::uint8,    DataType::int8,
    DataType::int16,       DataType::int32,       DataType::int64};

bool is_eight_bit_integer(DataType dtype) { return dtype == DataType::int8 || dtype == DataType::uint8; }

bool is_eight_bit_float(DataType dtype) { return dtype == DataType::float8_e4m3 || dtype == DataType::float8_e5m2; }

}  // namespace

ForwardCall::ForwardCall(std::span<const TensorSpec> inputs, const Attributes& attributes)
    : inputs_(inputs), attributes_(attributes) {
  check_input_count(op_info(attributes.op()), inputs);
}

void ForwardCall::refuse(const std::string& why_and_what_to_do) const {
  fail(ErrorCode::invalid_argument, "make_problem",
       std::string(to_string(attributes_.op())) + list_text(op_info(attributes_.op()), inputs_) + ": " +
           why_and_what_to_do);
}

void ForwardCall::need_rank(std::size_t input, std::size_t rank, std::string_view layout) const {
  if (shape(input).size() == rank) return;
  refuse(input_text(input, inputs_[input]) + " has " + std::to_string(shape(input).size()) + " dims, not " +
         std::to_string(rank) + "; reshape it to " + std::string(layout));
}

void ForwardCall::need_floating(std::size_t input) const {
  if (is_floating(inputs_[input].dtype)) return;
  refuse(input_text(input, inputs_[input]) + " is not floating; cast it to f32 or another float type");
}

void ForwardCall::need_numeric(std::size_t input) const {
  if (inputs_[input].dtype != DataType::boolean) return;
  refuse(input_text(input, inputs_[input]) + " is boolean and has no arithmetic; cast it to a numeric type");
}

void ForwardCall::need_index(std::size_t input) const {
  const DataType dtype = inputs_[input].dtype;
  if (dtype == DataType::int64 || dtype == DataType::int32) return;
  refuse(input_text(input, inputs_[input]) + " holds indices; cast it to i64 or i32");
}

void ForwardCall::need_shape(std::size_t input, const Dims& shape, std::string_view what) const {
  if (inputs_[input].shape == shape) return;
  refuse("the " + std::string(what) + " is " + to_string(inputs_[input].shape) + "; make it " + to_string(shape));
}

std::size_t ForwardCall::axis(std::int64_t dim, std::size_t rank) const {
  const auto count = static_cast<std::int64_t>(rank);
  if (dim >= -count && dim < count) return static_cast<std::size_t>(dim < 0 ? dim + count : dim);
  if (rank == 0) refuse("dim " + std::to_string(dim) + " of a tensor without dims; reshape it to one dim or more");
  refuse("dim " + std::to_string(dim) + " is out of range; use " + std::to_string(-count) + " to " +
         std::to_string(count - 1));
}

Dims ForwardCall::broadcast(const Dims& a, const Dims& b) const {
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const std::int64_t x = a[a.size() - i];
    const std::int64_t y = b[b.size() - i];
    if (x != y && x != 1 && y != 1) {
      refuse(to_string(a) + " and " + to_string(b) +
             " do not broadcast; make each pair of extents equal or 1, counted from the right");
    }
  }
  return broadcast_shapes(a, b);
}

std::string list_text(std::span<const TensorSpec> specs) {
  std::string text = "(";
  for (const TensorSpec& spec : specs) text += (text.size() > 1 ? ", " : "") + to_string(spec);
  return text + ")";
}

std::string list_text(const OpInfo& info, std::span<const TensorSpec> inputs) {
  std::string text = "(";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool none = may_be_none(info, i) && !has_input(inputs, i);
    text += (i > 0 ? ", " : "") + (none ? "none" : to_string(inputs[i]));
  }
  return text + ")";
}

bool may_be_none(const OpInfo& info, std::size_t i) {
  if (i >= info.inputs.size() || !info.inputs[i].optional) return false;
  return std::any_of(info.inputs.begin(), info.inputs.end(), [](const InputSpec& spec) { return spec.opt_in; });
}

void check_input_count(const OpInfo& info, std::span<const TensorSpec> inputs) {
  const bool fits = inputs.size() >= info.min_inputs && inputs.size() <= info.max_inputs;
  if (fits && !inputs.empty() && may_be_none(info, inputs.size() - 1) && !has_input(inputs, inputs.size() - 1)) {
    fail(ErrorCode::invalid_argument, "make_problem",
         std::string(info.name) + list_text(info, inputs) + ": the last input is none; leave it out");
  }
  if (fits) return;
  std::string range = std::to_string(info.min_inputs);
  if (info.max_inputs != info.min_inputs) range += " to " + std::to_string(info.max_inputs);
  fail(ErrorCode::invalid_argument, "make_problem",
       std::string(info.name) + list_text(inputs.first(std::min<std::size_t>(inputs.size(), 8))) + ": got " +
           counted(inputs.size(), "input") + "; give " + range);
}

DataType promote(std::span<const TensorSpec> specs) {
  const bool floating = std::any_of(specs.begin(), specs.end(), [](auto& spec) { return is_floating(spec.dtype); });
  for (const DataType dtype : promotion_order) {
    const auto fits = [&](const TensorSpec& spec) {
      return is_floating(spec.dtype) != floating || is_lossless(spec.dtype, dtype);
    };
    // tf32 is a way to compute, not a type to arrive at: f16 with bf16 gives f32.
    const auto is_it = [&](const TensorSpec& spec) { return spec.dtype == dtype; };
    if (dtype == DataType::tfloat32 && std::none_of(specs.begin(), specs.end(), is_it)) continue;
    if (is_floating(dtype) == floating && std::all_of(specs.begin(), specs.end(), fits)) return dtype;
  }
  return floating ? DataType::float64 : DataType::int64;
}

DataType product_dtype(std::span<const TensorSpec> specs) {
  const auto all = [&](bool (*test)(DataType)) {
    return std::all_of(specs.begin(), specs.end(), [&](const TensorSpec& spec) { return test(spec.dtype); });
  };
  if (all(is_eight_bit_integer)) return DataType::int32;
  return all(is_eight_bit_float) ? DataType::float32 : promote(specs);
}

}  // namespace xpuruntime
