#include <algorithm>
#include <span>
#include <utility>

#include "backends/opencl/checks.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::int64_t side = 16;  // SIDE in matmul_tiled.cl
constexpr std::int64_t group_items = side * side;
constexpr std::int64_t large_per_item = 4;  // rows and columns of the output that one work-item of a large tile has

/// A tensor as a stack of matrices.
struct Matrices {
  Dims batch = {};
  Dims batch_strides = {};
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 0;
};

/// Splits the dims that are there into batch, rows and columns. Vectors lack one of the latter.
Matrices split(const TensorSpec& spec, bool has_rows, bool has_columns) {
  std::size_t rest = spec.shape.size();
  Matrices result;
  if (has_columns) {
    result.columns = spec.shape[--rest];
    result.column_stride = spec.strides[rest];
  }
  if (has_rows) {
    result.rows = spec.shape[--rest];
    result.row_stride = spec.strides[rest];
  }
  result.batch = Dims(std::span(spec.shape.data(), rest));
  result.batch_strides = Dims(std::span(spec.strides.data(), rest));
  return result;
}

Matrices transposed(Matrices matrices) {
  std::swap(matrices.rows, matrices.columns);
  std::swap(matrices.row_stride, matrices.column_stride);
  return matrices;
}

struct Operands {
  Matrices a = {};  // m x k
  Matrices b = {};  // k x n
  Matrices c = {};  // m x n
};

Operands operands_of(const Problem& problem) {
  const bool a_is_vector = problem.inputs[0].shape.size() == 1;
  const bool b_is_vector = problem.inputs[1].shape.size() == 1;
  Operands result = {split(problem.inputs[0], !a_is_vector, true), split(problem.inputs[1], true, !b_is_vector),
                     split(problem.outputs[0], !a_is_vector, !b_is_vector)};
  if (problem.attributes.boolean("transpose_a")) result.a = transposed(result.a);
  if (problem.attributes.boolean("transpose_b")) result.b = transposed(result.b);
  return result;
}

Dims with_matrix(const Dims& batch, std::int64_t rows, std::int64_t columns) {
  Dims dims = Dims::filled(batch.size() + 2, 0);
  for (std::size_t d = 0; d < batch.size(); ++d) dims[d] = batch[d];
  dims[batch.size()] = rows;
  dims[batch.size() + 1] = columns;
  return dims;
}

Dims batch_strides(const Operands& operands, const Matrices& of) {
  return broadcast_strides(operands.c.batch, of.batch, of.batch_strides);
}

std::string options_of(const Problem& problem, int rank) {
  return " -D RANK=" + std::to_string(rank) + type_option('A', problem.inputs[0].dtype) +
         type_option('B', problem.inputs[1].dtype) + type_option('C', problem.outputs[0].dtype);
}

std::string only_row_major(const Problem& problem, const DeviceProfile&) {
  for (const char* flag : {"transpose_a", "transpose_b"})
    if (problem.attributes.boolean(flag)) return std::string(flag) + " is set: takes row-major operands";
  return {};
}

std::string needs_work_group(const Problem&, const DeviceProfile& profile) {
  std::int64_t allowed = profile.max_work_group_size;
  if (!profile.max_work_item_sizes.empty()) allowed = std::min<std::int64_t>(allowed, profile.max_work_item_sizes[0]);
  if (allowed >= group_items) return {};
  return "needs work-groups of " + std::to_string(group_items) + ", the device allows " + std::to_string(allowed);
}

/// Bytes that matmul_tiled.cl declares.
constexpr std::uint64_t local_bytes(std::int64_t per_item) {
  return static_cast<std::uint64_t>(side * (2 * side * per_item + 1)) * sizeof(float);
}

std::string needs_local_memory(const Problem&, const DeviceProfile& profile) {
  if (profile.local_memory_bytes >= local_bytes(1)) return {};
  return "needs " + std::to_string(local_bytes(1)) + " bytes of local memory, the device has " +
         std::to_string(profile.local_memory_bytes);
}

/// Large tiles move less memory, but leave work-items idle where the output is small.
std::int64_t items_per_side(const Operands& operands, const DeviceProfile& profile) {
  const std::int64_t large = side * large_per_item;
  const bool fills = operands.c.rows >= large && operands.c.columns >= large;
  return fills && profile.local_memory_bytes >= local_bytes(large_per_item) ? large_per_item : 1;
}

std::int64_t tiles(std::int64_t extent, std::int64_t tile) { return (extent + tile - 1) / tile; }

}  // namespace

Verdict supports_matmul_tiled(const Problem& problem, const DeviceProfile& profile) {
  return verdict_of(
      problem, profile,
      {only_forward, only_stored_floats, only_row_major, only_contiguous, needs_work_group, needs_local_memory});
}

bool prefers_matmul_tiled(const Problem& problem, const DeviceProfile&) {
  const Operands operands = operands_of(problem);
  return operands.c.rows >= side && operands.c.columns >= side;
}

std::unique_ptr<const Plan> prepare_matmul_tiled(const Problem& problem, const PrepareContext& context) {
  const Operands operands = operands_of(problem);
  const RankedIndex at = make_index(operands.c.batch, batch_strides(operands, operands.a),
                                    batch_strides(operands, operands.b), operands.c.batch_strides);
  const std::int64_t per_item = items_per_side(operands, context.profile);
  const std::int64_t tile = side * per_item;
  const std::int64_t m = operands.c.rows;
  const std::int64_t n = operands.c.columns;
  const std::string edge = std::to_string(tile);
  LaunchSpec spec = {.source = matmul_tiled_cl,
                     .function = "matmul_tiled",
                     .options = options_of(problem, at.rank) + " -D PER=" + std::to_string(per_item),
                     .items = at.index.count * tiles(m, tile) * tiles(n, tile) * group_items,
                     .local = group_items,
                     .token = "tile=" + edge + "x" + edge + "x" + std::to_string(side)};
  auto plan = std::make_unique<LaunchPlan>(context_of(context), std::move(spec), 3);
  plan->add_constant(at.index);
  plan->add_constant(m);
  plan->add_constant(n);
  plan->add_constant(operands.a.columns);
  return plan;
}

Verdict supports_matmul_direct(const Problem& problem, const DeviceProfile& profile) {
  return verdict_of(problem, profile, {only_forward, only_stored_floats});
}

std::unique_ptr<const Plan> prepare_matmul_direct(const Problem& problem, const PrepareContext& context) {
  const Operands operands = operands_of(problem);
  const auto& [a, b, c] = operands;
  const RankedIndex at =
      make_index(with_matrix(c.batch, c.rows, c.columns), with_matrix(batch_strides(operands, a), a.row_stride, 0),
                 with_matrix(batch_strides(operands, b), 0, b.column_stride),
                 with_matrix(c.batch_strides, c.row_stride, c.column_stride));
  LaunchSpec spec = {.source = matmul_direct_cl,
                     .function = "matmul_direct",
                     .options = options_of(problem, at.rank),
                     .items = at.index.count,
                     .token = "rank=" + std::to_string(at.rank)};
  auto plan = std::make_unique<LaunchPlan>(context_of(context), std::move(spec), 3);
  plan->add_constant(at.index);
  plan->add_constant(a.columns);
  plan->add_constant(a.column_stride);
  plan->add_constant(b.row_stride);
  return plan;
}

}  // namespace xpuruntime::opencl
