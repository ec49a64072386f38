#include <algorithm>

#include "backends/cuda/checks.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"

// A product with few rows is bound by reading b once. Everything here serves that: 16-byte loads where the layout
// allows, and enough of them in flight on every multiprocessor.

namespace xpuruntime::cuda {
namespace {

constexpr std::int64_t most_rows = 16;
constexpr std::int64_t most_extent = std::int64_t{1} << 30;  // the kernels count in 32 bits

bool is_16_bit(DataType dtype) { return dtype == DataType::float16 || dtype == DataType::bfloat16; }

Verdict few_rows(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = matmul_shape(problem);
  if (shape.m > most_rows) return refuse_over("m", shape.m, most_rows);
  if (shape.n > most_extent) return refuse_over("n", shape.n, most_extent);
  if (shape.k > most_extent) return refuse_over("k", shape.k, most_extent);
  return Verdict::yes();
}

Verdict one_matrix(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = matmul_shape(problem);
  return shape.batch_count == 1 ? Verdict::yes() : refuse_over("batch", shape.batch_count, 1);
}

Verdict skinny_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType dtype = problem.inputs[0].dtype;
  const DataType output = problem.outputs[0].dtype;
  if (dtype != DataType::float32 && !is_16_bit(dtype)) return refuse_dtype(dtype);
  if (problem.inputs[1].dtype != dtype) return Verdict::no("the inputs differ in dtype");
  if (output != dtype && output != DataType::float32) return refuse_dtype(output);
  return Verdict::yes();
}

bool along_k(const MatmulShape& shape) { return shape.b.row == 1 || shape.k <= 1; }
bool along_n(const MatmulShape& shape) { return shape.b.column == 1 || shape.n <= 1; }

Verdict b_is_dense(const Problem& problem, const DeviceProfile&) {
  const MatmulShape shape = matmul_shape(problem);
  return along_k(shape) || along_n(shape) ? Verdict::yes() : Verdict::no("no stride of the second input is 1");
}

/// Every row starts on 16 bytes and is whole vectors long.
bool has_vectors(std::int64_t extent, std::int64_t rows, std::int64_t stride, const TensorSpec& spec) {
  const auto wide = static_cast<std::int64_t>(16 / size_of(spec.dtype));
  return spec.alignment >= 16 && extent % wide == 0 && (rows <= 1 || stride % wide == 0);
}

bool k_vectors(const MatmulShape& shape, const Problem& problem) {
  return shape.a.column == 1 && shape.b.row == 1 && has_vectors(shape.k, shape.m, shape.a.row, problem.inputs[0]) &&
         has_vectors(shape.k, shape.n, shape.b.column, problem.inputs[1]);
}

bool n_vectors(const MatmulShape& shape, const Problem& problem) {
  return shape.b.column == 1 && has_vectors(shape.n, shape.k, shape.b.row, problem.inputs[1]);
}

SkinnyPath path_for(const MatmulShape& shape, const Problem& problem) {
  // A vector may be both: a column of b is then one long run along k.
  const bool by_columns = shape.n > 1 && along_n(shape) && !(shape.b.row == 1 && k_vectors(shape, problem));
  if (by_columns) return SkinnyPath::columns;
  return is_16_bit(problem.inputs[0].dtype) && k_vectors(shape, problem) ? SkinnyPath::tensor_cores : SkinnyPath::dots;
}

int power_of_two_rows(std::int64_t m) { return m > 4 ? 8 : m > 2 ? 4 : m > 1 ? 2 : 1; }

/// More warps a block where there are few blocks, but none without work.
int tensor_core_warps(const MatmulShape& shape, int units) {
  const std::int64_t columns = shape.m > 8 ? 16 : 8;
  const std::int64_t k_per_step = shape.m > 8 ? 64 : 128;
  const std::int64_t blocks = (shape.n + columns - 1) / columns;
  const std::int64_t useful = std::max<std::int64_t>((shape.k + k_per_step - 1) / k_per_step, 1);
  return static_cast<int>(std::min<std::int64_t>(blocks < 2 * units ? 16 : 8, useful));
}

/// Enough warps to fill the device: about 32 for each multiprocessor.
int warps_per_dot(const MatmulShape& shape, int units) {
  int warps = 1;
  while (warps < 8 && shape.n * warps < 32 * static_cast<std::int64_t>(units) && shape.k >= 256 * warps) warps *= 2;
  return warps;
}

/// Wide blocks read longer runs; narrower ones are taken while too few blocks would leave multiprocessors idle.
int lanes_for(const MatmulShape& shape, bool vector, DataType dtype, int units) {
  if (!vector) return 32;
  const auto wide = static_cast<std::int64_t>(16 / size_of(dtype));
  int lanes = 8;
  while (lanes > 2 && (shape.n + lanes * wide - 1) / (lanes * wide) * 4 < 3 * static_cast<std::int64_t>(units)) {
    lanes /= 2;
  }
  return lanes;
}

SkinnyLaunch choose(const Problem& problem, const DeviceProfile& profile) {
  const MatmulShape shape = matmul_shape(problem);
  const int units = std::max(profile.compute_units, 1);
  SkinnyLaunch launch;
  launch.m = static_cast<int>(shape.m);
  launch.n = static_cast<int>(shape.n);
  launch.k = static_cast<int>(shape.k);
  launch.a = shape.a;
  launch.b = shape.b;
  launch.c = shape.c;
  launch.dtype = problem.inputs[0].dtype;
  launch.output = problem.outputs[0].dtype;
  launch.path = path_for(shape, problem);
  launch.vector = launch.path == SkinnyPath::columns ? n_vectors(shape, problem) : k_vectors(shape, problem);
  launch.rows = power_of_two_rows(shape.m);
  launch.warps = tensor_core_warps(shape, units);
  launch.warps_per_dot = warps_per_dot(shape, units);
  launch.lanes = lanes_for(shape, launch.vector, launch.dtype, units);
  return launch;
}

std::string token_of(const SkinnyLaunch& launch) {
  const std::string load = launch.vector ? " load=16" : " load=1";
  switch (launch.path) {
    case SkinnyPath::tensor_cores:
      return "path=tensor_cores warps=" + std::to_string(launch.warps);
    case SkinnyPath::dots:
      return "path=dots rows=" + std::to_string(launch.rows) +
             " warps_per_dot=" + std::to_string(launch.warps_per_dot) + load;
    default:
      return "path=columns rows=" + std::to_string(launch.rows) + " lanes=" + std::to_string(launch.lanes) + load;
  }
}

}  // namespace

Verdict supports_skinny(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({has_code, is_aligned, skinny_dtype, few_rows, one_matrix, b_is_dense}, problem, profile);
}

bool prefers_skinny(const Problem& problem, const DeviceProfile&) {
  // Past four rows the plain paths are bound by arithmetic; the matrix units are not.
  const MatmulShape shape = matmul_shape(problem);
  return shape.m <= 4 || path_for(shape, problem) == SkinnyPath::tensor_cores;
}

std::unique_ptr<const Plan> prepare_skinny(const Problem& problem, const PrepareContext& context) {
  const SkinnyLaunch launch = choose(problem, context.profile);
  return std::make_unique<LaunchPlan<SkinnyLaunch>>("matmul skinny", context.device, launch, token_of(launch));
}

}  // namespace xpuruntime::cuda
