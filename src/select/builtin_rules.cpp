#include <algorithm>
#include <cstdint>

#include "select/cpu_conditions.h"
#include "select/first_choice.h"
#include "xpuruntime/select/rule.h"

namespace xpuruntime {
namespace {

constexpr DeviceType cpu = DeviceType::cpu;
constexpr DeviceType cuda = DeviceType::nvidia;
constexpr DeviceType opencl = DeviceType::opencl;

bool always(const Problem&, const DeviceProfile&) { return true; }

/// Rows of the product; of a batch, rows of one matrix.
std::int64_t rows(const Problem& problem) {
  const Dims& out = problem.outputs.front().shape;
  if (problem.op == OpId::linear) return element_count(problem.outputs.front()) / std::max<std::int64_t>(out.back(), 1);
  return out.size() < 2 ? 1 : out[out.size() - 2];
}

bool too_few_rows_for_tiles(const Problem& problem, const DeviceProfile&) { return rows(problem) < 16; }

std::uint64_t weight_bytes(const Problem& problem) {
  const TensorSpec& weight = problem.inputs[1];
  return static_cast<std::uint64_t>(element_count(weight)) * size_of(weight.dtype);
}

/// Whether neighbours in memory are neighbours along the summed dimension, as in a linear layer's [out, in] weight.
bool weight_runs_along_k(const Problem& problem) {
  const Dims& strides = problem.inputs[1].strides;
  if (strides.size() < 2) return true;
  if (problem.op == OpId::linear) return strides.back() == 1;
  return strides[strides.size() - (problem.attributes.boolean("transpose_b") ? 1 : 2)] == 1;
}

// Measured on an H200 in bf16 with a cold L2 (bench/cuda_bench.py): one row is read faster than by cuBLASLt up to any
// size, a few rows while the weight is small.
bool few_rows_small_weight(const Problem& problem, const DeviceProfile&) {
  const std::int64_t m = rows(problem);
  return weight_runs_along_k(problem) && (m == 1 || (m <= 8 && weight_bytes(problem) <= 5u << 20));
}

bool one_row(const Problem& problem, const DeviceProfile&) {
  return rows(problem) == 1 && !weight_runs_along_k(problem) && weight_bytes(problem) <= 48u << 20;
}

/// Whether one row of a matrix begins at another place within 16 bytes than the next one; vectors have one row.
bool has_uneven_rows(const TensorSpec& matrix) {
  const std::size_t rank = matrix.shape.size();
  if (rank < 2 || matrix.shape[rank - 1] == 1 || matrix.shape[rank - 2] == 1) return false;
  const std::int64_t row = std::max(matrix.strides[rank - 1], matrix.strides[rank - 2]);
  return row * static_cast<std::int64_t>(size_of(matrix.dtype)) % 16 != 0;
}

// Measured on an H200 in bf16 and f16 with a cold L2 (bench/cuda_bench.py): NVIDIA's fast algorithms need rows of whole
// 16 bytes. For others cuBLAS and cuBLASLt may name one that takes up to 60 times as long. Weights were of up to 12
// MiB.
bool few_uneven_rows_of_16_bits(const Problem& problem, const DeviceProfile&) {
  return weight_bytes(problem) <= 16u << 20 && rows(problem) <= 64 && size_of(problem.inputs[0].dtype) == 2 &&
         (has_uneven_rows(problem.inputs[0]) || has_uneven_rows(problem.inputs[1]) ||
          has_uneven_rows(problem.outputs[0]));
}

// Measured there too, against cuBLASLt's own choice: up to 8 rows skinny is as fast or faster, by 25 % at most. With up
// to 16 small weights are, with more only long ones of few columns.
bool few_rows_on_hopper(const Problem& problem, const DeviceProfile& profile) {
  if (profile.compute_capability_major != 9 || size_of(problem.inputs[0].dtype) != 2) return false;
  const std::int64_t m = rows(problem), n = problem.outputs[0].shape.back();
  if (m == 1 && !weight_runs_along_k(problem)) return false;  // has a rule of its own
  const std::uint64_t most_mib = m <= 8 ? 144 : m <= 16 ? 40 : 0;
  const std::uint64_t long_column = 2 * 1536;  // bytes; with a shorter k cuBLASLt's fixed costs are the smaller ones
  const bool long_and_narrow =
      m <= 64 && n <= 128 && weight_bytes(problem) >= static_cast<std::uint64_t>(n) * long_column;
  return weight_bytes(problem) <= most_mib << 20 || long_and_narrow;
}

// A convolution's weight is [out, in / groups, height, width].
bool has_filter(const Problem& problem, std::int64_t extent) {
  const Dims& weight = problem.inputs[1].shape;
  return weight.size() == 4 && weight[2] == extent && weight[3] == extent;
}

bool has_stride_one(const Problem& problem) {
  for (const std::int64_t step : problem.attributes.list("stride")) {
    if (step != 1) return false;
  }
  return true;
}

bool apple_3x3_stride_1(const Problem& problem, const DeviceProfile& profile) {
  return profile.vendor == "apple" && has_filter(problem, 3) && has_stride_one(problem);
}

bool one_by_one(const Problem& problem, const DeviceProfile&) { return has_filter(problem, 1); }

bool intel_integrated(const Problem&, const DeviceProfile& profile) {
  return profile.vendor == "intel" && profile.integrated;
}

/// A processor among OpenCL devices, as backends/opencl/groups.h tells them.
bool on_processor(const DeviceProfile& profile) { return profile.vendor == "pocl" || profile.has_cpu_feature("cpu"); }

bool processor(const Problem&, const DeviceProfile& profile) { return on_processor(profile); }

bool processor_3x3_stride_1(const Problem& problem, const DeviceProfile& profile) {
  const Dims& weight = problem.inputs[1].shape;
  return on_processor(profile) && has_filter(problem, 3) && has_stride_one(problem) && weight[0] >= 16 &&
         weight[1] >= 16;
}

// Measured on PoCL (bench/opencl_choice_bench): of 49 pixels, laying out the weights for a matrix product costs more
// than it gains; of 196 it pays.
bool one_by_one_of_few_pixels(const Problem& problem, const DeviceProfile& profile) {
  const Dims& out = problem.outputs[0].shape;
  return on_processor(profile) && has_filter(problem, 1) && has_stride_one(problem) && out[0] * out[2] * out[3] <= 64;
}

/// The seed's own bound on what is small.
bool is_small(const Problem& problem) { return element_count(problem.inputs[0]) < 1024; }
bool large_on_processor(const Problem& problem, const DeviceProfile& profile) {
  return on_processor(profile) && !is_small(problem);
}
bool small_elsewhere(const Problem& problem, const DeviceProfile& profile) {
  return !on_processor(profile) && is_small(problem);
}

bool few_channels_in_a_group(const Problem& problem, const DeviceProfile&) {
  const std::int64_t groups = problem.attributes.integer("groups");
  return groups > 1 && problem.inputs[1].shape[0] / groups < 4;
}

/// An H200 reads the rows again for each column of a weight along k: 275 us for 8 of them, 22 us for one.
bool few_rows_of_a_product(const Problem& problem, const DeviceProfile& profile) {
  const bool one_only = profile.vendor == "nvidia" && weight_runs_along_k(problem);
  return rows(problem) <= (one_only ? 1 : 8);
}

/// Sums that are long enough to be shared. Guesses, the smaller one where tiles left most of an H200 idle.
std::int64_t long_sum(const DeviceProfile& profile) { return profile.vendor == "nvidia" ? 256 : 1024; }

std::int64_t terms_of_a_sum(const Problem& problem) {
  const TensorSpec& a = problem.inputs[0];
  const bool along_rows = problem.op == OpId::matmul && problem.attributes.boolean("transpose_a");
  return a.shape[a.shape.size() - (along_rows ? 2 : 1)];
}

/// Packing for MATMUL_REGISTER_BLOCKED: on an H200 it pays from 2^30 terms on, and not yet at 2^28.
bool too_small_to_pack(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t outputs = element_count(problem.outputs.front());
  return !on_processor(profile) &&
         outputs <= (std::int64_t{1} << 29) / std::max<std::int64_t>(terms_of_a_sum(problem), 1);
}

/// Fewer tiles of 64x64 than compute units, and long sums.
bool few_tiles_of_long_sums(const Problem& problem, const DeviceProfile& profile) {
  const std::int64_t terms = terms_of_a_sum(problem);
  const std::int64_t outputs = element_count(problem.outputs.front()), m = std::max<std::int64_t>(rows(problem), 1);
  const std::int64_t columns = outputs / m, tiles = (m + 63) / 64 * ((columns + 63) / 64);
  return !on_processor(profile) && terms >= long_sum(profile) && tiles < profile.compute_units;
}

bool nvidia_few_tiles(const Problem& problem, const DeviceProfile& profile) {
  const Dims& weight = problem.inputs[1].shape;
  const std::int64_t groups = problem.attributes.integer("groups"), channels = weight[0];
  const std::int64_t pixels = channels == 0 ? 0 : element_count(problem.outputs.front()) / channels;
  const std::int64_t tiles = groups * ((channels / groups + 63) / 64) * ((pixels + 63) / 64);
  const std::int64_t terms = channels == 0 ? 0 : element_count(problem.inputs[1]) / channels;
  return profile.vendor == "nvidia" && terms >= long_sum(profile) && tiles < profile.compute_units;
}

bool nvidia_3x3_stride_1(const Problem& problem, const DeviceProfile& profile) {
  const Dims& weight = problem.inputs[1].shape;
  return profile.vendor == "nvidia" && problem.attributes.integer("groups") == 1 && has_filter(problem, 3) &&
         has_stride_one(problem) && weight[0] >= 16 && weight[1] >= 16;
}

bool nvidia_1x1_with_steps(const Problem& problem, const DeviceProfile& profile) {
  return profile.vendor == "nvidia" && has_filter(problem, 1) && !has_stride_one(problem);
}

bool nvidia_few_channels_in(const Problem& problem, const DeviceProfile& profile) {
  return profile.vendor == "nvidia" && problem.attributes.integer("groups") == 1 && problem.inputs[1].shape[1] <= 4 &&
         !is_small(problem);
}

using namespace cpu_rules;

// Tried from the top; one whose kernel cannot run the problem is passed over. One line per piece of knowledge, each
// with its reason.
constexpr BuiltinRule rules[] = {
    {OpId::matmul, cpu, few_rows, "skinny", "few rows: each weight is read once and used at once"},
    {OpId::matmul, cpu, few_columns, "skinny", "few columns: the matrix is read once and used at once"},
    {OpId::matmul, cpu, fits_first_cache, "small", "up to 64 in each extent: packing would cost more than it saves"},
    {OpId::matmul, cpu, bf16_with_matrix_instructions, "amx", "bf16 on a CPU with AMX: no packing of the rows"},
    {OpId::matmul, cpu, bf16_with_matrix_instructions, "onednn", "bf16 on a CPU that multiplies matrices of it"},
    {OpId::matmul, cpu, bytes_with_matrix_instructions, "onednn", "8-bit integers on a CPU that multiplies them"},
    {OpId::matmul, cpu, bytes, "int8", "8-bit integers, with the dot products that the CPU has"},
    {OpId::matmul, cpu, whole_vectors_on_x86, "onednn", "whole vectors on x86: oneDNN's generated code"},
    {OpId::matmul, cpu, always, "packed", "any size and layout: packed into cache-sized blocks"},
    {OpId::linear, cpu, few_rows, "skinny", "few rows: each weight is read once and used at once"},
    {OpId::linear, cpu, few_columns, "skinny", "few columns: the input is read once and used at once"},
    {OpId::linear, cpu, fits_first_cache, "small", "up to 64 in each extent: packing would cost more than it saves"},
    {OpId::linear, cpu, bf16_with_matrix_instructions, "amx", "bf16 on a CPU with AMX: no packing of the rows"},
    {OpId::linear, cpu, bf16_with_matrix_instructions, "onednn", "bf16 on a CPU that multiplies matrices of it"},
    {OpId::linear, cpu, bytes_with_matrix_instructions, "onednn", "8-bit integers on a CPU that multiplies them"},
    {OpId::linear, cpu, bytes, "int8", "8-bit integers, with the dot products that the CPU has"},
    {OpId::linear, cpu, whole_vectors_on_x86, "onednn", "whole vectors on x86: oneDNN's generated code"},
    {OpId::linear, cpu, always, "packed", "any size and layout: packed into cache-sized blocks"},
    {OpId::conv2d, cpu, other_layout_on_x86, "onednn", "x86, channels last: nothing is copied"},
    {OpId::conv2d, cpu, depthwise_on_large_planes, "depthwise", "one channel per group, planes of 28x28 and more"},
    {OpId::conv2d, cpu, narrow_groups, "direct", "groups of up to 8 channels leave a product's tiles empty"},
    {OpId::conv2d, cpu, pointwise, "im2col", "a 1x1 filter is a matrix product"},
    {OpId::conv2d, cpu, small_filter_on_an_image, "im2col", "up to 4 channels and 9 taps: a short product"},
    {OpId::conv2d, cpu, many_tiles_3x3, "winograd", "3x3, stride 1, many tiles: 2.25 to 4 times fewer products"},
    {OpId::conv2d, cpu, other_layout_on_small_planes, "im2col",
     "channels last, up to 64 outputs per channel: one product"},
    {OpId::conv2d, cpu, x86_vectors, "onednn", "x86: oneDNN's generated code"},
    {OpId::conv2d, cpu, depthwise, "depthwise", "one channel per group"},
    {OpId::conv2d, cpu, stride_one_3x3, "winograd", "3x3 and stride 1: 2.25 to 4 times fewer products"},
    {OpId::conv2d, cpu, other_layout, "im2col", "channels last: windows are runs of memory, and nothing is copied"},
    {OpId::conv2d, cpu, backward, "im2col", "gradients are products with the columns of the input"},
    {OpId::conv2d, cpu, forward, "direct", "the general case"},
    {OpId::conv3d, cpu, depthwise, "depthwise", "one channel per group"},
    {OpId::conv3d, cpu, x86_vectors, "onednn", "x86: oneDNN's generated code"},
    {OpId::conv3d, cpu, other_layout, "im2col", "channels last: windows are runs of memory, and nothing is copied"},
    {OpId::conv3d, cpu, backward, "im2col", "gradients are products with the columns of the input"},
    {OpId::conv3d, cpu, forward, "direct", "the general case"},
    {OpId::attention, cpu, few_queries, "single_query", "up to 4 queries: bound by reading keys and values"},
    {OpId::attention, cpu, bf16_with_matrix_instructions, "tiled_amx", "bf16 on a CPU with AMX"},
    {OpId::attention, cpu, always, "tiled", "scores stay in the cache, whatever the length"},
    {OpId::matmul, cuda, few_rows_small_weight, "skinny", "one row, or up to 8 and a weight of at most 5 MiB"},
    {OpId::matmul, cuda, one_row, "skinny", "one row and a row-major weight of at most 48 MiB"},
    {OpId::matmul, cuda, few_uneven_rows_of_16_bits, "skinny",
     "few rows that are not multiples of 16 bytes, and a small weight"},
    {OpId::matmul, cuda, few_rows_on_hopper, "skinny",
     "16 bits on Hopper: up to 8 rows, 16 of small weights, 64 of narrow ones"},
    {OpId::matmul, cuda, always, "cublasLt", "tensor cores for everything else"},
    {OpId::linear, cuda, few_rows_small_weight, "skinny", "one row, or up to 8 and a weight of at most 5 MiB"},
    {OpId::linear, cuda, few_uneven_rows_of_16_bits, "skinny",
     "few rows that are not multiples of 16 bytes, and a small weight"},
    {OpId::linear, cuda, few_rows_on_hopper, "skinny",
     "16 bits on Hopper: up to 8 rows, 16 of small weights, 64 of narrow ones"},
    {OpId::linear, cuda, always, "cublasLt", "tensor cores for everything else"},
    {OpId::matmul, opencl, few_rows_of_a_product, "MATMUL_FEW_ROWS",
     "up to 8 rows: bound by reading the weight, which is read once and not copied"},
    {OpId::matmul, opencl, processor, "MATMUL_REGISTER_BLOCKED",
     "a CPU device: sums in registers, as local memory is memory like any other"},
    {OpId::matmul, opencl, few_tiles_of_long_sums, "MATMUL_SPLIT_K",
     "fewer tiles than compute units and long sums: several share each"},
    {OpId::matmul, opencl, too_few_rows_for_tiles, "MATMUL_DIRECT", "fewer than 16 rows leave most of a tile empty"},
    {OpId::matmul, opencl, always, "MATMUL_TILED_LOCAL", "tiles in local memory read each input once per tile"},
    {OpId::matmul, opencl, too_small_to_pack, "MATMUL_DIRECT",
     "work-groups too small for tiles, at most 2^29 terms: 3 to 18 times as fast on an H200 as packed panels"},
    {OpId::linear, opencl, few_rows_of_a_product, "MATMUL_FEW_ROWS",
     "up to 8 rows: bound by reading the weight, which is read once and not copied"},
    {OpId::linear, opencl, processor, "MATMUL_REGISTER_BLOCKED",
     "a CPU device: sums in registers, as local memory is memory like any other"},
    {OpId::linear, opencl, few_tiles_of_long_sums, "MATMUL_SPLIT_K",
     "fewer tiles than compute units and long sums: several share each"},
    {OpId::linear, opencl, too_few_rows_for_tiles, "MATMUL_DIRECT", "fewer than 16 rows leave most of a tile empty"},
    {OpId::linear, opencl, always, "MATMUL_TILED_LOCAL", "tiles in local memory read each input once per tile"},
    {OpId::linear, opencl, too_small_to_pack, "MATMUL_DIRECT",
     "work-groups too small for tiles, at most 2^29 terms: 3 to 18 times as fast on an H200 as packed panels"},
    {OpId::conv2d, opencl, apple_3x3_stride_1, "CONV2D_WINOGRAD", "Apple GPU, 3x3 filter, stride 1"},
    {OpId::conv2d, opencl, one_by_one_of_few_pixels, "CONV2D_NAIVE_SMALL",
     "few pixels on a CPU: weights are not worth packing"},
    {OpId::conv2d, opencl, nvidia_1x1_with_steps, "CONV2D_IMPLICIT_GEMM",
     "NVIDIA, 1x1 filter, stride over 1: 1.5 to 1.8 times as fast on an H200 as with copied windows"},
    {OpId::conv2d, opencl, one_by_one, "CONV2D_IM2COL", "a 1x1 filter is a matrix product"},
    {OpId::conv2d, opencl, few_channels_in_a_group, "CONV2D_NAIVE_SMALL",
     "fewer than 4 channels in a group leave most of a product's tile empty"},
    {OpId::conv2d, opencl, intel_integrated, "CONV2D_TILED_LOCAL", "integrated Intel GPUs share their bandwidth"},
    {OpId::conv2d, opencl, processor_3x3_stride_1, "CONV2D_WINOGRAD",
     "a CPU device, 3x3 filter, stride 1, 16 channels and more: 2.25 to 4 times fewer products"},
    {OpId::conv2d, opencl, large_on_processor, "CONV2D_IM2COL",
     "a CPU device: windows that are copied are read as vectors"},
    {OpId::conv2d, opencl, nvidia_3x3_stride_1, "CONV2D_WINOGRAD",
     "NVIDIA, 3x3 filter, stride 1, 16 channels and more: 1.7 to 2.5 times as fast as the next on an H200"},
    {OpId::conv2d, opencl, nvidia_few_channels_in, "CONV2D_TILED_LOCAL",
     "NVIDIA, up to 4 channels in: 1.2 to 1.6 times as fast on an H200, one image"},
    {OpId::conv2d, opencl, nvidia_few_tiles, "CONV2D_IM2COL",
     "NVIDIA, fewer tiles than compute units: several share the sums of a product of copied windows"},
    {OpId::conv2d, opencl, small_elsewhere, "CONV2D_NAIVE_SMALL", "fewer than 1024 elements: one launch and no tiles"},
    {OpId::conv2d, opencl, always, "CONV2D_IMPLICIT_GEMM", "the general case"},
    {OpId::conv3d, opencl, few_channels_in_a_group, "CONV2D_NAIVE_SMALL",
     "fewer than 4 channels in a group leave most of a product's tile empty"},
    {OpId::conv3d, opencl, large_on_processor, "CONV2D_IM2COL",
     "a CPU device: windows that are copied are read as vectors"},
    {OpId::conv3d, opencl, always, "CONV2D_IMPLICIT_GEMM", "the general case"},
    {OpId::attention, opencl, few_queries, "ATTENTION_SINGLE_QUERY",
     "up to 4 queries: bound by reading keys and values"},
    {OpId::attention, opencl, always, "ATTENTION_TILED", "scores stay in local memory, whatever the length"},
};

}  // namespace

std::span<const BuiltinRule> builtin_rules() { return rules; }

std::string unmeasured_note(const DeviceProfile& profile) {
  if (profile.type != cuda || profile.compute_capability_major <= 9) return {};
  return ", compute capability " + std::to_string(profile.compute_capability_major) + "." +
         std::to_string(profile.compute_capability_minor) + " was not measured";
}

}  // namespace xpuruntime
