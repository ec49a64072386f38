#include "backends/opencl/classes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

#include "core/attention_inputs.h"

namespace xpuruntime::opencl {
namespace {

constexpr unsigned all_dims = ~0U;

std::int64_t class_extent(std::int64_t extent) {
  constexpr std::int64_t most_exact = 8, most_divisor = 16;
  if (extent <= most_exact) return extent;
  const auto ceiling = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)));
  return ceiling == extent ? extent : ceiling - std::min(most_divisor, extent & -extent);
}

/// Replaces the extents of some dims. Strides that follow from the extents of the next inner dim go along; those of a
/// view of something larger stay.
void loosen(TensorSpec& spec, unsigned dims) {
  const std::size_t rank = spec.shape.size();
  std::array<std::size_t, max_rank> order = {};
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(rank);
  std::iota(order.begin(), end, std::size_t{0});
  const auto last =
      std::remove_if(order.begin(), end, [&](std::size_t d) { return spec.shape[d] == 1 || spec.strides[d] == 0; });
  std::stable_sort(order.begin(), last,
                   [&](std::size_t a, std::size_t b) { return spec.strides[a] < spec.strides[b]; });
  Dims shape = spec.shape, strides = spec.strides;
  for (std::size_t d = 0; d < rank; ++d)
    if ((dims >> d & 1) != 0) shape[d] = class_extent(shape[d]);
  for (auto at = order.begin(); at != last && at + 1 != last; ++at) {
    const std::size_t inner = *at, outer = *(at + 1);
    if (spec.strides[outer] == spec.shape[inner] * spec.strides[inner]) strides[outer] = shape[inner] * strides[inner];
  }
  spec = make_spec(spec.dtype, shape, strides, spec.alignment);
}

void loosen(std::vector<TensorSpec>& specs, unsigned dims) {
  for (TensorSpec& spec : specs) loosen(spec, dims);
}

/// Nothing stands for what has no elements: its strides say nothing.
bool is_empty(const Problem& problem) {
  const auto empty = [](const TensorSpec& spec) { return spec != no_input() && element_count(spec) == 0; };
  return std::any_of(problem.inputs.begin(), problem.inputs.end(), empty) ||
         std::any_of(problem.outputs.begin(), problem.outputs.end(), empty);
}

}  // namespace

std::optional<Problem> attention_class(const Problem& problem) {
  if (is_empty(problem)) return {};
  Problem any = problem;
  constexpr unsigned batch = 1U << 0, lines = 1U << 2;
  const bool paged = has_input(problem.inputs, attention_page_table);
  loosen(any.inputs[0], batch | lines);
  for (const std::size_t i : {1, 2}) loosen(any.inputs[i], paged ? 0 : batch | lines);
  for (const std::size_t i : {attention_mask, attention_lengths, attention_page_table}) {
    if (!has_input(problem.inputs, i)) continue;
    const std::size_t rank = any.inputs[i].shape.size();
    const bool has_heads = i == attention_mask && rank >= 3;
    loosen(any.inputs[i], has_heads ? ~(1U << (rank - 3)) : all_dims);
  }
  loosen(any.outputs, batch | lines);
  return any;
}

std::optional<Problem> product_class(const Problem& problem) {
  if (is_empty(problem)) return {};
  Problem any = problem;
  if (problem.op != OpId::linear) {
    loosen(any.inputs, all_dims);
    loosen(any.outputs, all_dims);
    return any;
  }
  const std::size_t last = problem.inputs[0].shape.size() - 1;
  loosen(any.inputs[0], ~(1U << last));
  loosen(any.outputs, ~(1U << last));
  return any;
}

std::optional<Problem> shape_class(const Problem& problem) {
  if (is_empty(problem)) return {};
  Problem any = problem;
  const std::size_t rank = problem.outputs[0].shape.size();
  const unsigned dims = problem.op == OpId::silu_mul && rank > 0 ? ~(1U << (rank - 1)) : all_dims;
  loosen(any.inputs, dims);
  loosen(any.outputs, dims);
  return any;
}

std::optional<Problem> norm_class(const Problem& problem) {
  const std::size_t rank = problem.inputs[0].shape.size();
  if (is_empty(problem) || problem.op == OpId::normalize) return {};
  const bool layer = problem.op == OpId::layer_norm;
  const auto row_dims = static_cast<std::size_t>(layer ? problem.attributes.integer("normalized_rank") : 1);
  const unsigned rows = (1U << (rank - row_dims)) - 1;
  Problem any = problem;
  for (auto* specs : {&any.inputs, &any.outputs})
    for (TensorSpec& spec : *specs)
      if (spec.shape.size() == rank && spec.shape == problem.inputs[0].shape) loosen(spec, rows);
  return any;
}

std::optional<Problem> token_class(const Problem& problem) {
  if (is_empty(problem)) return {};
  Problem any = problem;
  loosen(any.inputs[0], all_dims);
  if (problem.op == OpId::rope) {
    // The last two dims are heads and their size.
    const std::size_t rank = problem.inputs[0].shape.size();
    const unsigned tokens = (1U << (rank - 2)) - 1;
    any.inputs[0] = problem.inputs[0];
    loosen(any.inputs[0], tokens);
    loosen(any.inputs[1], all_dims);
    loosen(any.outputs, tokens);
    return any;
  }
  loosen(any.outputs, (1U << problem.inputs[0].shape.size()) - 1);
  return any;
}

}  // namespace xpuruntime::opencl
