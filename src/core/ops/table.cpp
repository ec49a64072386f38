#include <array>

#include "core/ops/schema.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

using Table = std::array<OpInfo, static_cast<std::size_t>(OpId::builtin_count)>;

Table in_order_of_numbers() {
  Table table;
  for (const auto& family : {op_rows::matrix, op_rows::window, op_rows::norm, op_rows::reduce, op_rows::loss,
                             op_rows::elementwise, op_rows::movement, op_rows::indexing, op_rows::arranging,
                             op_rows::decoder, op_rows::quantization, op_rows::pointwise, op_rows::logic}) {
    for (const OpInfo& row : family()) table[static_cast<std::size_t>(row.id)] = with_input_counts(row);
  }
  return table;
}

}  // namespace

std::span<const OpInfo> builtin_ops() {
  static const Table table = in_order_of_numbers();
  return table;
}

void OpList::fail_too_many() { fail(ErrorCode::invalid_argument, "OpList", "at most 16 ops; write two rows"); }

InputSpec usual_input(OpCategory category, std::size_t i) {
  InputSpec spec;
  switch (category) {
    case OpCategory::lookup:
    case OpCategory::movement:
      spec.follows_precision = false;
      break;
    case OpCategory::loss:
      spec.follows_precision = i == 0;
      break;
    case OpCategory::normalization:  // running statistics are read and written channel by channel
      spec.follows_precision = i == 0;
      spec.in_place = static_cast<std::uint8_t>(i > 0 && i < 8 ? 1U << i : 0U);
      break;
    case OpCategory::elementwise:
    case OpCategory::activation:
      spec.in_place = any_output;
      break;
    default:
      break;
  }
  return spec;
}

InputSpec input_spec(const OpInfo& info, std::size_t i) {
  if (i < info.inputs.size()) return info.inputs[i];
  const bool repeats = !info.inputs.empty() && info.inputs.back().repeated;
  return repeats ? info.inputs.back() : usual_input(info.category, i);
}

std::string_view to_string(OpCategory category) {
  constexpr std::string_view names[] = {"matrix",      "reduction", "loss",   "normalization", "activation",
                                        "elementwise", "pooling",   "lookup", "movement"};
  return names[static_cast<std::size_t>(category)];
}

}  // namespace xpuruntime
