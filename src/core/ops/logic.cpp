#include "core/ops/schema.h"

// Comparisons, logic, bits and choices.

namespace xpuruntime::op_rows {
namespace {

Specs of_dtype(const ForwardCall& call, DataType dtype) {
  const bool two = call.size() > 1;
  return {like_inputs(call.inputs(), dtype, two ? call.broadcast(call.shape(0), call.shape(1)) : call.shape(0))};
}

Specs infer_test(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  return of_dtype(call, DataType::boolean);
}

Specs infer_comparison(Inputs inputs, const Attributes& attributes) {
  return of_dtype(ForwardCall(inputs, attributes), DataType::boolean);
}

Specs infer_logic(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (call[i].dtype == DataType::boolean) continue;
    call.refuse("input " + std::to_string(i) + ", " + to_string(call[i]) + ", is not boolean; compare it with 0");
  }
  return of_dtype(call, DataType::boolean);
}

Specs integers(const ForwardCall& call, bool or_boolean) {
  for (std::size_t i = 0; i < call.size(); ++i) {
    if (is_floating(call[i].dtype) || (!or_boolean && call[i].dtype == DataType::boolean)) {
      call.refuse("input " + std::to_string(i) + ", " + to_string(call[i]) +
                  ", has no bits to work on; cast it to an " + "integer type");
    }
  }
  return of_dtype(call, promote(call.inputs()));
}

Specs infer_bits(Inputs inputs, const Attributes& attributes) {
  return integers(ForwardCall(inputs, attributes), true);
}

Specs infer_shift(Inputs inputs, const Attributes& attributes) {
  return integers(ForwardCall(inputs, attributes), false);
}

Specs infer_where(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  if (call[0].dtype != DataType::boolean) call.refuse("the condition is not boolean; compare it with 0");
  if (call[1].dtype != call[2].dtype) call.refuse("the inputs to choose from are of two dtypes; cast one of them");
  const Dims shape = call.broadcast(call.broadcast(call.shape(0), call.shape(1)), call.shape(2));
  return {like_inputs(inputs.subspan(1), call[1].dtype, shape)};
}

// What is compared or chosen is never rounded first.
constexpr InputSpec plain(std::string_view name, bool or_number = false) {
  return {.name = name, .or_number = or_number, .gradient = false, .follows_precision = false, .in_place = any_output};
}

constexpr InputSpec one_input[] = {plain("input")};
constexpr InputSpec two_inputs[] = {plain("input"), plain("other", true)};
constexpr InputSpec shift_inputs[] = {plain("input"),
                                      {.name = "bits",
                                       .or_number = true,
                                       .values = InputValues::count,
                                       .gradient = false,
                                       .follows_precision = false,
                                       .in_place = any_output}};
constexpr InputSpec where_inputs[] = {plain("condition"), plain("input"), plain("other")};

constexpr OpInfo row(Id id, std::string_view name, std::string_view aliases, std::string_view summary,
                     InferOutputs infer, std::span<const InputSpec> inputs, std::string_view sample = {}) {
  return {.id = id,
          .name = name,
          .aliases = aliases,
          .category = Kind::elementwise,
          .summary = summary,
          .inputs = inputs,
          .infer = infer,
          .sample = sample,
          .rounding = Rounding::exact};
}

constexpr OpInfo comparison(Id id, std::string_view name, std::string_view alias, std::string_view summary) {
  return row(id, name, alias, summary, infer_comparison, two_inputs);
}

constexpr OpInfo bits(Id id, std::string_view name, std::string_view summary) {
  return row(id, name, "", summary, infer_bits, two_inputs, "i32[64,64], i32[64,64]");
}

constexpr OpInfo logic_row(Id id, std::string_view name, std::string_view summary) {
  return row(id, name, "", summary, infer_logic, two_inputs, "bool[64,64], bool[64,64]");
}

constexpr OpInfo rows[] = {
    row(Id::isnan, "isnan", "", "Whether each element is NaN.", infer_test, one_input),
    row(Id::isinf, "isinf", "", "Whether each element is infinite.", infer_test, one_input),
    comparison(Id::equal, "equal", "eq", "Whether two elements are equal; NaN is equal to nothing."),
    comparison(Id::not_equal, "not_equal", "ne", "Whether two elements differ; NaN differs from everything."),
    comparison(Id::less, "less", "lt", "Whether the first element is below the second."),
    comparison(Id::less_equal, "less_equal", "le", "Whether the first element is not above the second."),
    comparison(Id::greater, "greater", "gt", "Whether the first element is above the second."),
    comparison(Id::greater_equal, "greater_equal", "ge", "Whether the first element is not below the second."),
    logic_row(Id::logical_and, "logical_and", "Whether both elements are true."),
    logic_row(Id::logical_or, "logical_or", "Whether one of two elements is true."),
    logic_row(Id::logical_xor, "logical_xor", "Whether just one of two elements is true."),
    row(Id::logical_not, "logical_not", "", "Whether each element is false.", infer_logic, one_input, "bool[64,64]"),
    bits(Id::bitwise_and, "bitwise_and", "The bits that both elements have."),
    bits(Id::bitwise_or, "bitwise_or", "The bits that one of two elements has."),
    bits(Id::bitwise_xor, "bitwise_xor", "The bits that just one of two elements has."),
    row(Id::bitwise_not, "bitwise_not", "", "The bits that each element does not have.", infer_bits, one_input,
        "i32[64,64]"),
    row(Id::shift_left, "shift_left", "bitwise_left_shift", "Each element's bits, moved up by so many places.",
        infer_shift, shift_inputs, "i32[64,64], i32[64,64]"),
    row(Id::shift_right, "shift_right", "bitwise_right_shift",
        "Each element's bits, moved down by so many places; a sign stays.", infer_shift, shift_inputs,
        "i32[64,64], i32[64,64]"),
    row(Id::where, "where", "", "The second array's element where the condition is true, else the third's.",
        infer_where, where_inputs, "bool[64,64], T[64,64], T[64,64]"),
};

}  // namespace

std::span<const OpInfo> logic() { return rows; }

}  // namespace xpuruntime::op_rows
