#include <cstdint>

#include "xpuruntime/select/rule.h"

namespace xpuruntime {
namespace {

constexpr DeviceType cuda = DeviceType::nvidia;
constexpr DeviceType opencl = DeviceType::opencl;

bool always(const Problem&, const DeviceProfile&) { return true; }

/// Rows of the product; of a batch, rows of one matrix.
std::int64_t rows(const Problem& problem) {
  const Dims& out = problem.outputs.front().shape;
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
  return strides[strides.size() - (problem.attributes.boolean("transpose_b") ? 1 : 2)] == 1;
}

// Measured on an H200 in bf16 with a cold L2 (bench/cuda_bench): up to 1.9 times as fast as cuBLASLt there, behind past
// it.
bool few_rows_small_weight(const Problem& problem, const DeviceProfile&) {
  return rows(problem) <= 16 && weight_runs_along_k(problem) && weight_bytes(problem) <= 16u << 20;
}

bool one_row(const Problem& problem, const DeviceProfile&) {
  return rows(problem) == 1 && !weight_runs_along_k(problem) && weight_bytes(problem) <= 48u << 20;
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

bool pointwise(const Problem& problem, const DeviceProfile&) { return has_filter(problem, 1); }

bool intel_integrated(const Problem&, const DeviceProfile& profile) {
  return profile.vendor == "intel" && profile.integrated;
}

// Tried from the top. One line per piece of knowledge, each with its reason.
constexpr BuiltinRule rules[] = {
    {OpId::matmul, cuda, few_rows_small_weight, "skinny", "few rows and a weight of at most 16 MiB"},
    {OpId::matmul, cuda, one_row, "skinny", "one row and a row-major weight of at most 48 MiB"},
    {OpId::matmul, cuda, always, "cublasLt", "tensor cores for everything else"},
    {OpId::matmul, opencl, too_few_rows_for_tiles, "MATMUL_DIRECT", "fewer than 16 rows leave most of a tile empty"},
    {OpId::matmul, opencl, always, "MATMUL_TILED_LOCAL", "tiles in local memory read each input once per tile"},
    {OpId::conv2d, opencl, apple_3x3_stride_1, "CONV2D_WINOGRAD", "Apple GPU, 3x3 filter, stride 1"},
    {OpId::conv2d, opencl, pointwise, "CONV2D_IM2COL", "a 1x1 filter is a matrix product"},
    {OpId::conv2d, opencl, intel_integrated, "CONV2D_TILED_LOCAL", "integrated Intel GPUs share their bandwidth"},
    {OpId::conv2d, opencl, always, "CONV2D_IMPLICIT_GEMM", "the general case"},
};

}  // namespace

std::span<const BuiltinRule> builtin_rules() { return rules; }

}  // namespace xpuruntime
