#include <algorithm>

#include "backends/opencl/classes.h"
#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/product.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::int64_t tile_sides[] = {1, 4, 8};  // of a work-item's part of a tile
constexpr Block blocks[] = {{8, 8}, {4, 16}, {4, 8}};

/// Tiles and parts are chosen for the class of a problem.
ProductShape shape_of_class(const Problem& problem) {
  return product_of(product_class(problem).value_or(problem)).shape;
}

std::string tile_token(std::int64_t per_item) {
  const std::string edge = std::to_string(tile_side * per_item);
  return "tile=" + edge + "x" + edge + "x" + std::to_string(tile_depth(per_item));
}

std::string block_token(const Block& block) {
  return "block=" + std::to_string(block.rows) + "x" + std::to_string(block.columns);
}

std::string split_token(std::int64_t parts) { return "parts=" + std::to_string(parts); }

std::int64_t two_parts_or_more(const ProductShape& shape, const DeviceProfile& profile) {
  return std::max(part_counts[0], parts_for(shape, profile));
}

Verdict leaves_a_batch_dim(const Problem& problem, const DeviceProfile&) {
  return is_at_most("batch dims", product_of(problem).shape.rank, max_batch_dims - 1);
}

/// Work-items that share a column of a product of few rows: along k, and along n, where a group has several columns.
std::int64_t lanes_for(const DeviceProfile& profile) { return is_cpu(profile) ? 1 : 32; }
constexpr std::int64_t columns_of_group = 16;
std::int64_t lanes_along_n(const DeviceProfile& profile) {
  std::int64_t lanes = lanes_for(profile);
  while (lanes > 1 && lanes * columns_of_group > largest_group(profile)) lanes /= 2;
  return lanes;
}

Verdict fits_tiles(const Problem&, const DeviceProfile& profile) {
  const Verdict groups = has_work_groups(profile, tile_side * tile_side);
  return groups.supported ? has_local_memory(profile, tile_local_bytes(1)) : groups;
}

bool walks_along_n(const ProductShape& shape) { return shape.b.row != 1 || shape.a.column != 1; }

void fill_matmul_rows(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const Product product = product_of(problem);
  const ProductShape& shape = product.shape;
  const bool along_n = walks_along_n(shape);
  const std::int64_t rows = shape.m <= 1 ? 1 : shape.m <= 4 ? 4 : 8;
  const std::int64_t lanes = along_n ? lanes_along_n(context.profile) : lanes_for(context.profile);
  const bool shared = along_n && lanes > 1;
  // A CPU's items have long runs of columns, whose sums the nearest cache holds, and leave every core some.
  constexpr std::int64_t held = 2048, vector = 16;
  const std::int64_t columns = shared ? columns_of_group : lanes == 1 ? held / rows : 1;
  const std::int64_t share = divided_up(shape.count * shape.n, 4 * std::max(context.profile.compute_units, 1));
  const std::int64_t each =
      shared ? columns : std::min(divided_up(std::max<std::int64_t>(share, 1), vector) * vector, columns);
  const std::int64_t group = shared ? lanes * columns : lanes;
  const std::int64_t groups = along_n ? divided_up(shape.n, each) : shape.n;
  Launch& launch = plan.add({.source = product_source(matmul_rows_cl),
                             .function = along_n ? "rows_along_n" : "rows_along_k",
                             .options = product_types(product) + cpu_option(context.profile) +
                                        " -D ROWS=" + std::to_string(rows) + " -D COLUMNS=" + std::to_string(columns) +
                                        " -D LANES=" + std::to_string(lanes) + long_sums_option(product),
                             .items = shape.m == 0 ? 0 : shape.count * groups * group,
                             .local = static_cast<std::size_t>(group)});
  bind(bind(bind(launch, product.a), product.b), product.c);
  bind_finish(launch, product);
  if (along_n && !shared) launch.constant(each);
}

void fill_matmul_direct(LaunchPlan& plan, const Problem& problem, const PrepareContext&) {
  const Product product = product_of(problem);
  Launch& launch = plan.add({.source = product_source(matmul_direct_cl),
                             .function = "matmul_direct",
                             .options = product_types(product),
                             .items = product.shape.count * product.shape.m * product.shape.n});
  bind(bind(bind(launch, product.a), product.b), product.c);
  bind_finish(launch, product);
}

}  // namespace

Verdict supports_product(const Problem& problem, const DeviceProfile&) {
  return has_float_scalars(problem) ? Verdict::yes() : Verdict::no("alpha or beta does not fit in f32");
}

Verdict supports_matmul_tiled(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_product, fits_tiles}, problem, profile);
}

std::vector<std::string> matmul_tiled_variants(const Problem&, const PrepareContext& context) {
  std::vector<std::string> tokens;
  for (const std::int64_t per_item : tile_sides) {
    if (per_item <= largest_per_item(context.profile)) tokens.push_back(tile_token(per_item));
  }
  return tokens;
}

std::unique_ptr<const Plan> prepare_matmul_tiled_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token) {
  std::int64_t per_item = 1;
  for (const std::int64_t side : tile_sides) {
    if (token == tile_token(side)) per_item = side;
  }
  const auto fill = [per_item](LaunchPlan& plan, const Problem& of, const PrepareContext&) {
    add_tiled_product(plan, product_of(of), per_item);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, tile_token(per_item));
}

std::unique_ptr<const Plan> prepare_matmul_tiled(const Problem& problem, const PrepareContext& context) {
  const std::int64_t per_item = tile_per_item(shape_of_class(problem), context.profile);
  return prepare_matmul_tiled_variant(problem, context, tile_token(per_item));
}

std::uint64_t matmul_block_workspace_bytes(const Problem& problem, const DeviceProfile&) {
  const Product product = product_of(problem);
  std::uint64_t most = 0;
  for (const Block& block : blocks) most = std::max(most, block_workspace_bytes(product, block));
  return most;
}

std::vector<std::string> matmul_block_variants(const Problem&, const PrepareContext&) {
  std::vector<std::string> tokens;
  for (const Block& block : blocks) tokens.push_back(block_token(block));
  return tokens;
}

std::unique_ptr<const Plan> prepare_matmul_block_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token) {
  Block block = block_for(context.profile);
  for (const Block& one : blocks) {
    if (token == block_token(one)) block = {one.rows, one.columns, block.group};
  }
  const auto fill = [block](LaunchPlan& plan, const Problem& of, const PrepareContext&) {
    add_block_product(plan, product_of(of), block);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, block_token(block),
                                      block_workspace_bytes(product_of(problem), block));
}

std::unique_ptr<const Plan> prepare_matmul_block(const Problem& problem, const PrepareContext& context) {
  return prepare_matmul_block_variant(problem, context, block_token(blocks[0]));
}

Verdict supports_matmul_split(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_product, leaves_a_batch_dim, fits_tiles}, problem, profile);
}

std::uint64_t matmul_split_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return split_workspace_bytes(product_of(problem).shape, two_parts_or_more(shape_of_class(problem), profile));
}

std::vector<std::string> matmul_split_variants(const Problem& problem, const PrepareContext&) {
  std::vector<std::string> tokens;
  for (const std::int64_t parts : part_counts) {
    if (parts == part_counts[0] || shape_of_class(problem).k >= 32 * parts) tokens.push_back(split_token(parts));
  }
  return tokens;
}

std::unique_ptr<const Plan> prepare_matmul_split_variant(const Problem& problem, const PrepareContext& context,
                                                         std::string_view token) {
  std::int64_t parts = part_counts[0];
  for (const std::int64_t count : part_counts) {
    if (token == split_token(count)) parts = count;
  }
  const std::int64_t per_item = tile_per_item(shape_of_class(problem), context.profile);
  const auto fill = [parts, per_item](LaunchPlan& plan, const Problem& of, const PrepareContext&) {
    add_split_product(plan, product_of(of), per_item, parts);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, split_token(parts),
                                      split_workspace_bytes(product_of(problem).shape, parts));
}

std::unique_ptr<const Plan> prepare_matmul_split(const Problem& problem, const PrepareContext& context) {
  const std::int64_t parts = two_parts_or_more(shape_of_class(problem), context.profile);
  return prepare_matmul_split_variant(problem, context, split_token(parts));
}

Verdict supports_matmul_rows(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t most_rows = 8;
  const Verdict any = supports_product(problem, profile);
  if (!any.supported) return any;
  const ProductShape shape = product_of(problem).shape;
  const Verdict rows = is_at_most("m", shape.m, most_rows);
  if (!rows.supported || shape.b.column == 1) return rows;
  if (shape.b.row != 1) return Verdict::no("input 1 is contiguous neither along k nor along n");
  if (shape.a.column != 1) return Verdict::no("input 0 is not contiguous along k, as input 1 is");
  return has_work_groups(profile, lanes_for(profile));
}

std::unique_ptr<const Plan> prepare_matmul_rows(const Problem& problem, const PrepareContext& context) {
  const char* token = walks_along_n(product_of(problem).shape) ? "walk=n" : "walk=k";
  return std::make_unique<LaunchPlan>(problem, context, fill_matmul_rows, token);
}

std::unique_ptr<const Plan> prepare_matmul_direct(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_matmul_direct);
}

}  // namespace xpuruntime::opencl
