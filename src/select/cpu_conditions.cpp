#include "select/cpu_conditions.h"

#include <algorithm>

#include "core/backward.h"
#include "core/matmul_shape.h"

namespace xpuruntime::cpu_rules {
namespace {

bool is_forward(const Problem& problem) { return problem.direction == Direction::forward; }

/// Rows, columns and summed extent of a product; of a batch, those of one matrix. The products of backward have the
/// same three extents in other roles: [m, n] times [n, k] and [k, m] times [m, n].
struct Extents {
  std::int64_t m = 0, n = 0, k = 0;
};

Extents extents_of(const Problem& problem) {
  if (problem.op == OpId::matmul) {
    const MatmulShape shape = matmul_shape(is_forward(problem) ? problem : forward_of(problem));
    return {shape.m, shape.n, shape.k};
  }
  const Dims& weight = problem.inputs[1].shape;
  const std::int64_t inputs = element_count(problem.inputs[0]);
  return {inputs / std::max<std::int64_t>(weight[1], 1), weight[0], weight[1]};
}

bool all_inputs(const Problem& problem, DataType dtype) {
  return std::all_of(problem.inputs.begin(), problem.inputs.end(),
                     [&](const TensorSpec& spec) { return spec.dtype == dtype; });
}

bool all_equal(const std::vector<std::int64_t>& values, std::int64_t value) {
  return std::all_of(values.begin(), values.end(), [&](std::int64_t v) { return v == value; });
}

/// A convolution's weight is [out, in / groups, filter...]; input and output are [batch, channels, pixels...].
bool has_filter(const Problem& problem, std::int64_t extent) {
  const Dims& weight = problem.inputs[1].shape;
  return std::all_of(weight.begin() + 2, weight.end(), [&](std::int64_t v) { return v == extent; });
}

std::int64_t filter_size(const Problem& problem) {
  const Dims& weight = problem.inputs[1].shape;
  std::int64_t size = 1;
  for (std::size_t i = 2; i < weight.size(); ++i) size *= weight[i];
  return size;
}

std::int64_t pixels(const Problem& problem) {
  const Dims& out = problem.outputs[0].shape;
  std::int64_t count = 1;
  for (std::size_t i = 2; i < out.size(); ++i) count *= out[i];
  return count;
}

std::int64_t group_channels(const Problem& problem) { return problem.inputs[1].shape[1]; }

bool is_depthwise(const Problem& problem) {
  return is_forward(problem) && problem.attributes.integer("groups") > 1 && group_channels(problem) == 1;
}

}  // namespace

bool forward(const Problem& problem, const DeviceProfile&) { return is_forward(problem); }
bool backward(const Problem& problem, const DeviceProfile&) { return !is_forward(problem); }

// Backward, the gradient of the few rows reads each weight once too, and that of the weight writes each once.
// Past eight rows the work per weight that was read is worth a blocked product; with AMX past four.
bool few_rows(const Problem& problem, const DeviceProfile& profile) {
  const Extents e = extents_of(problem);
  const bool tiles = all_inputs(problem, DataType::bfloat16) && profile.has_cpu_feature("amx_bf16");
  return e.m <= (tiles ? 4 : 8) && e.n >= 256;
}

bool few_columns(const Problem& problem, const DeviceProfile&) {
  const Extents e = extents_of(problem);
  return e.n <= 4 && e.m >= 64;
}

bool fits_first_cache(const Problem& problem, const DeviceProfile&) {
  const Extents e = extents_of(problem);
  return std::max({e.m, e.n, e.k}) <= 64;
}

bool bf16_with_matrix_instructions(const Problem& problem, const DeviceProfile& profile) {
  return all_inputs(problem, DataType::bfloat16) &&
         (profile.has_cpu_feature("amx_bf16") || profile.has_cpu_feature("avx512_bf16"));
}

bool bytes_with_matrix_instructions(const Problem& problem, const DeviceProfile& profile) {
  return size_of(problem.inputs[0].dtype) == 1 &&
         (profile.has_cpu_feature("amx_int8") || profile.has_cpu_feature("avx512_vnni"));
}

bool bytes(const Problem& problem, const DeviceProfile&) { return size_of(problem.inputs[0].dtype) == 1; }

/// Few rows, a and b both transposed: oneDNN takes 1.2 to 1.9 times as long as `packed` (two Xeon cores).
bool few_rows_both_transposed(const Problem& problem) {
  if (!is_forward(problem)) return false;
  const MatmulShape shape = product_shape(problem);
  return shape.m <= 128 && shape.a.row == 1 && shape.a.column != 1 && shape.b.row == 1 && shape.b.column != 1;
}

bool whole_vectors_on_x86(const Problem& problem, const DeviceProfile& profile) {
  if (few_rows_both_transposed(problem)) return false;
  const Extents e = extents_of(problem);
  // Backward, every extent is a row or a sum of one product.
  const bool whole = e.n % 16 == 0 && e.k % 16 == 0 && (is_forward(problem) || e.m % 16 == 0);
  return profile.has_cpu_feature("avx2") && all_inputs(problem, DataType::float32) && whole;
}

bool depthwise_on_large_planes(const Problem& problem, const DeviceProfile&) {
  return is_depthwise(problem) && pixels(problem) >= 28 * 28;
}

bool depthwise(const Problem& problem, const DeviceProfile&) { return is_depthwise(problem); }

bool narrow_groups(const Problem& problem, const DeviceProfile&) {
  const bool grouped = is_forward(problem) && problem.attributes.integer("groups") > 1;
  return grouped && group_channels(problem) > 1 && group_channels(problem) <= 8;
}

// Those that narrow many channels on large planes are left to oneDNN where it is fast.
bool pointwise(const Problem& problem, const DeviceProfile& profile) {
  const Dims& weight = problem.inputs[1].shape;
  const bool narrows = weight[0] < weight[1] && pixels(problem) >= 28 * 28 && profile.has_cpu_feature("avx2") &&
                       all_equal(problem.attributes.list("stride"), 1);
  return is_forward(problem) && has_filter(problem, 1) && !narrows;
}

bool small_filter_on_an_image(const Problem& problem, const DeviceProfile&) {
  const bool image = is_forward(problem) && problem.attributes.integer("groups") == 1 && group_channels(problem) <= 4;
  return image && filter_size(problem) <= 9;
}

// On smaller planes most of its tiles hang over the edge.
bool stride_one_3x3(const Problem& problem, const DeviceProfile&) {
  return is_forward(problem) && has_filter(problem, 3) && pixels(problem) >= 28 * 28 &&
         all_equal(problem.attributes.list("stride"), 1) && all_equal(problem.attributes.list("dilation"), 1) &&
         problem.attributes.integer("groups") == 1;
}

bool many_tiles_3x3(const Problem& problem, const DeviceProfile& profile) {
  return stride_one_3x3(problem, profile) && pixels(problem) >= 48 * 48 && group_channels(problem) >= 32 &&
         all_inputs(problem, DataType::float32);
}

bool x86_vectors(const Problem&, const DeviceProfile& profile) { return profile.has_cpu_feature("avx2"); }

// As the kernel gets it: kernels that take contiguous tensors alone get no other.
bool other_layout(const Problem& problem, const DeviceProfile&) {
  return is_forward(problem) && !problem.inputs[0].contiguous;
}

// Of a few pixels and one tap, converting the weight costs more than it saves.
bool other_layout_on_x86(const Problem& problem, const DeviceProfile& profile) {
  const bool few = has_filter(problem, 1) && pixels(problem) <= 64 && problem.attributes.integer("groups") == 1;
  return other_layout(problem, profile) && !few && x86_vectors(problem, profile);
}

bool other_layout_on_small_planes(const Problem& problem, const DeviceProfile& profile) {
  return other_layout(problem, profile) && pixels(problem) <= 64;
}

bool few_queries(const Problem& problem, const DeviceProfile&) { return problem.inputs[0].shape[2] <= 4; }

}  // namespace xpuruntime::cpu_rules
