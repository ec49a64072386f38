#include <span>
#include <utility>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "core/matmul_shape.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::int64_t side = 16;  // SIDE in matmul_tiled.cl
constexpr std::int64_t group_items = side * side;
constexpr std::int64_t large_per_item = 4;  // rows and columns of the output that one work-item of a large tile has

/// The batch dims and, after them, two more.
Dims with_matrix(const MatmulShape& shape, const std::int64_t* batch, std::int64_t rows, std::int64_t columns) {
  const auto rank = static_cast<std::size_t>(shape.batch_dims);
  Dims dims = Dims::filled(rank + 2, 0);
  for (std::size_t d = 0; d < rank; ++d) dims[d] = batch[d];
  dims[rank] = rows;
  dims[rank + 1] = columns;
  return dims;
}

Dims batch_of(const MatmulShape& shape, const std::int64_t* values) {
  return Dims(std::span(values, static_cast<std::size_t>(shape.batch_dims)));
}

std::string options_of(const Problem& problem, int rank) {
  return " -D RANK=" + std::to_string(rank) + type_option('A', problem.inputs[0].dtype) +
         type_option('B', problem.inputs[1].dtype) + type_option('C', problem.outputs[0].dtype);
}

Verdict is_row_major(const Problem& problem, const DeviceProfile&) {
  for (const char* flag : {"transpose_a", "transpose_b"})
    if (problem.attributes.boolean(flag)) return Verdict::no(std::string(flag) + " is set: takes row-major operands");
  return is_contiguous(problem);
}

/// Bytes that matmul_tiled.cl declares.
constexpr std::uint64_t local_bytes(std::int64_t per_item) {
  return static_cast<std::uint64_t>(side * (2 * side * per_item + 1)) * sizeof(float);
}

Verdict fits_small_tiles(const Problem&, const DeviceProfile& profile) {
  const Verdict groups = has_work_groups(profile, group_items);
  return groups.supported ? has_local_memory(profile, local_bytes(1)) : groups;
}

/// Large tiles move less memory, but leave work-items idle where the output is small.
std::int64_t items_per_side(const MatmulShape& shape, const DeviceProfile& profile) {
  const std::int64_t large = side * large_per_item;
  const bool fills = shape.m >= large && shape.n >= large;
  return fills && profile.local_memory_bytes >= local_bytes(large_per_item) ? large_per_item : 1;
}

std::string tile_token(std::int64_t per_item) {
  const std::string edge = std::to_string(side * per_item);
  return "tile=" + edge + "x" + edge + "x" + std::to_string(side);
}

}  // namespace

Verdict supports_matmul_tiled(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({is_row_major, fits_small_tiles}, problem, profile);
}

std::vector<std::string> matmul_tiled_variants(const Problem&, const PrepareContext& context) {
  std::vector<std::string> tokens = {tile_token(1)};
  if (context.profile.local_memory_bytes >= local_bytes(large_per_item)) tokens.push_back(tile_token(large_per_item));
  return tokens;
}

std::unique_ptr<const Plan> prepare_matmul_tiled_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token) {
  const MatmulShape shape = matmul_shape(problem);
  const RankedIndex at = make_index(batch_of(shape, shape.batch_extent), batch_of(shape, shape.a.batch),
                                    batch_of(shape, shape.b.batch), batch_of(shape, shape.c.batch));
  const std::int64_t per_item = token == tile_token(large_per_item) ? large_per_item : 1;
  const std::int64_t tile = side * per_item;
  auto plan = std::make_unique<LaunchPlan>(context_of(context), tile_token(per_item));
  plan->add({.source = matmul_tiled_cl,
             .function = "matmul_tiled",
             .options = options_of(problem, at.rank) + " -D PER=" + std::to_string(per_item),
             .items = at.index.count * divided_up(shape.m, tile) * divided_up(shape.n, tile) * group_items,
             .local = group_items})
      .input(0)
      .input(1)
      .output(0)
      .constant(at.index)
      .constant(shape.m)
      .constant(shape.n)
      .constant(shape.k);
  return plan;
}

std::unique_ptr<const Plan> prepare_matmul_tiled(const Problem& problem, const PrepareContext& context) {
  const std::int64_t per_item = items_per_side(matmul_shape(problem), context.profile);
  return prepare_matmul_tiled_variant(problem, context, tile_token(per_item));
}

std::unique_ptr<const Plan> prepare_matmul_direct(const Problem& problem, const PrepareContext& context) {
  const MatmulShape shape = matmul_shape(problem);
  const RankedIndex at = make_index(with_matrix(shape, shape.batch_extent, shape.m, shape.n),
                                    with_matrix(shape, shape.a.batch, shape.a.row, 0),
                                    with_matrix(shape, shape.b.batch, 0, shape.b.column),
                                    with_matrix(shape, shape.c.batch, shape.c.row, shape.c.column));
  auto plan = std::make_unique<LaunchPlan>(context_of(context), "rank=" + std::to_string(at.rank));
  plan->add({.source = matmul_direct_cl,
             .function = "matmul_direct",
             .options = options_of(problem, at.rank),
             .items = at.index.count})
      .input(0)
      .input(1)
      .output(0)
      .constant(at.index)
      .constant(shape.k)
      .constant(shape.a.column)
      .constant(shape.b.row);
  return plan;
}

}  // namespace xpuruntime::opencl
