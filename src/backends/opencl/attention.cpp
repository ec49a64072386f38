#include <algorithm>
#include <cmath>
#include <limits>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"
#include "core/attention_inputs.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

/// As in kernels/attention.cl.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;
  std::int64_t width = 0;
  std::int64_t q[4] = {};
  std::int64_t k[4] = {};
  std::int64_t v[4] = {};
  std::int64_t out[4] = {};
  std::int64_t mask[4] = {};
  std::int64_t lse[3] = {};
  std::int64_t length_stride = 0;
  std::int64_t table_row = 0;
  std::int64_t table_step = 0;
  std::int64_t pages = 0;
  std::int64_t page_size = 1;
  float scale = 1;
  std::int32_t causal = 0;
  std::int32_t mask_kind = 0;
  std::int32_t length_bytes = 0;
  std::int32_t paged = 0;
  std::int32_t has_lse = 0;

  std::int64_t group() const { return heads / key_heads; }  // query heads that share keys
};

double scale_of(const Problem& problem) {
  const double scale = problem.attributes.real("scale");
  return scale == 0 ? 1 / std::sqrt(static_cast<double>(problem.inputs[0].shape[3])) : scale;
}

AttentionShape attention_shape(const Problem& problem) {
  const TensorSpec &q = problem.inputs[0], &k = problem.inputs[1], &v = problem.inputs[2];
  AttentionShape shape;
  shape.paged = has_input(problem.inputs, attention_page_table);
  shape.batch = q.shape[0];
  shape.heads = q.shape[1];
  shape.key_heads = k.shape[shape.paged ? 2 : 1];
  shape.queries = q.shape[2];
  shape.keys = attention_keys(problem.inputs);
  shape.depth = q.shape[3];
  shape.width = v.shape[3];
  for (std::size_t i = 0; i < 4; ++i) {
    // Pages are [pages, page_size, heads, head_size].
    const std::size_t from = shape.paged && (i == 1 || i == 2) ? 3 - i : i;
    shape.q[i] = q.strides[i];
    shape.k[i] = k.strides[from];
    shape.v[i] = v.strides[from];
    shape.out[i] = problem.outputs[0].strides[i];
  }
  if (problem.outputs.size() > 1) {
    shape.has_lse = 1;
    std::copy_n(problem.outputs[1].strides.begin(), 3, shape.lse);
  }
  if (has_input(problem.inputs, attention_mask)) {
    const TensorSpec& mask = problem.inputs[attention_mask];
    const Dims strides =
        broadcast_strides({shape.batch, shape.heads, shape.queries, shape.keys}, mask.shape, mask.strides);
    std::copy(strides.begin(), strides.end(), shape.mask);
    shape.mask_kind = mask.dtype == DataType::boolean ? 1 : 2;
  }
  if (has_input(problem.inputs, attention_lengths)) {
    const TensorSpec& lengths = problem.inputs[attention_lengths];
    shape.length_stride = lengths.strides[0];
    shape.length_bytes = static_cast<std::int32_t>(size_of(lengths.dtype));
  }
  if (shape.paged != 0) {
    const TensorSpec& table = problem.inputs[attention_page_table];
    shape.table_row = table.strides[0];
    shape.table_step = table.strides[1];
    shape.pages = k.shape[0];
    shape.page_size = k.shape[1];
  }
  shape.scale = static_cast<float>(scale_of(problem));
  const bool bottom_right = problem.attributes.choice("causal_align") == "bottom_right";
  if (problem.attributes.boolean("causal")) shape.causal = bottom_right ? 2 : 1;
  return shape;
}

std::string attention_types(const Problem& problem) {
  const bool added =
      has_input(problem.inputs, attention_mask) && problem.inputs[attention_mask].dtype != DataType::boolean;
  return type_option('A', problem.inputs[0].dtype) + type_option('B', problem.inputs[1].dtype) +
         type_option('V', problem.inputs[2].dtype) + type_option('C', problem.outputs[0].dtype) +
         type_option('M', added ? problem.inputs[attention_mask].dtype : DataType::float32);
}

/// ATTENTION_PARAMETERS: any tensor stands for one that is not there.
Launch& bind_attention(Launch& launch, const Problem& problem, std::shared_ptr<const Fault> fault,
                       const AttentionShape& shape) {
  for (std::size_t i = 0; i <= attention_page_table; ++i) launch.input(has_input(problem.inputs, i) ? i : 0);
  return launch.output(0).output(problem.outputs.size() > 1 ? 1 : 0).fault(std::move(fault)).constant(shape);
}

std::shared_ptr<const Fault> attention_fault(LaunchPlan& plan, const PrepareContext& context,
                                             const AttentionShape& shape) {
  return plan.fault(context, "attention: a length is negative or more than the keys, or a page not one of the " +
                                 std::to_string(shape.pages) + " pages");
}

constexpr std::int64_t keys_in_tile = 32;  // KEYS in attention_tiled.cl
constexpr std::int64_t largest_head = 256;

/// As in attention_tiled.cl, and what its launch is made of.
struct AttentionTiling {
  std::int64_t depth = 0;
  std::int64_t width = 0;
  std::int64_t tiles = 0;
  std::int64_t parts = 1;
  std::int64_t keys_per_part = 0;
};
struct AttentionTiles {
  AttentionTiling tiling = {};
  std::int64_t rows = 16;
  std::int64_t group = 1;  // work-items

  std::int64_t line_floats() const { return keys_in_tile * std::max(tiling.depth, tiling.width); }
  std::uint64_t local_bytes() const {
    const std::int64_t floats = rows * tiling.depth + line_floats() + rows * (keys_in_tile + 3);
    return static_cast<std::uint64_t>(floats) * sizeof(float) +
           static_cast<std::uint64_t>(keys_in_tile + 2 * rows + 1) * sizeof(std::int64_t);
  }
};

constexpr std::int64_t up_to_multiple(std::int64_t value, std::int64_t of) { return divided_up(value, of) * of; }

AttentionTiles tiles_of(const AttentionShape& shape, const DeviceProfile& profile, bool split) {
  AttentionTiles tiles;
  const bool cpu = is_cpu(profile);
  tiles.group = cpu ? 1 : 64;
  // On a GPU the rows of a tile begin in other banks.
  tiles.tiling.depth = std::max<std::int64_t>(4, up_to_multiple(shape.depth, 4)) + (cpu ? 0 : 4);
  tiles.tiling.width = std::max<std::int64_t>(16, up_to_multiple(shape.width, 16));
  const std::int64_t rows = shape.group() * shape.queries;
  const std::int64_t most = std::max(shape.depth, shape.width) <= 128 ? 16 : 8;
  tiles.rows = most;
  for (const std::int64_t fewer : {8, 4, 2}) {
    if (split && rows <= fewer) tiles.rows = std::min(fewer, most);
  }
  tiles.tiling.tiles = divided_up(rows, tiles.rows);
  tiles.tiling.keys_per_part = up_to_multiple(std::max<std::int64_t>(shape.keys, 1), keys_in_tile);
  if (split) {
    // Enough groups for every compute unit, but parts long enough to be worth joining.
    const std::int64_t groups = std::max<std::int64_t>(1, shape.batch * shape.key_heads * tiles.tiling.tiles);
    const std::int64_t wanted = divided_up((cpu ? 2 : 4) * std::max(profile.compute_units, 1), groups);
    const std::int64_t parts = std::clamp<std::int64_t>(wanted, 1, divided_up(shape.keys, 8 * keys_in_tile));
    tiles.tiling.keys_per_part = up_to_multiple(divided_up(std::max<std::int64_t>(shape.keys, 1), parts), keys_in_tile);
    tiles.tiling.parts = divided_up(shape.keys, tiles.tiling.keys_per_part);
  }
  return tiles;
}

std::uint64_t partial_bytes(const AttentionShape& shape, const AttentionTiles& tiles) {
  if (tiles.tiling.parts == 1) return 0;
  return static_cast<std::uint64_t>(shape.batch * shape.heads * shape.queries * tiles.tiling.parts *
                                    (tiles.tiling.width + 2)) *
         sizeof(float);
}

void fill_tiles(LaunchPlan& plan, const Problem& problem, const PrepareContext& context, bool split) {
  const AttentionShape shape = attention_shape(problem);
  const AttentionTiles tiles = tiles_of(shape, context.profile, split);
  const AttentionTiling& tiling = tiles.tiling;
  static const std::string source = std::string(attention_cl) + attention_tiled_cl;
  const std::int64_t sums = divided_up(tiles.rows * (tiling.width / 16), tiles.group);
  const auto fault = attention_fault(plan, context, shape);
  Launch& launch =
      plan.add({.source = source,
                .function = "attention_tiled",
                .options = attention_types(problem) + " -D ROWS=" + std::to_string(tiles.rows) +
                           " -D GROUP=" + std::to_string(tiles.group) + " -D BLOCKS=" + std::to_string(sums),
                .items = shape.batch * shape.key_heads * tiling.tiles * tiling.parts * tiles.group,
                .local = static_cast<std::size_t>(tiles.group)});
  bind_attention(launch, problem, fault, shape)
      .constant(tiling)
      .workspace()
      .local(static_cast<std::size_t>(tiles.rows * tiling.depth) * sizeof(float))
      .local(static_cast<std::size_t>(tiles.line_floats()) * sizeof(float));
  if (tiling.parts == 1) return;
  plan.add({.source = source,
            .function = "attention_join",
            .options = attention_types(problem),
            .items = shape.batch * shape.heads * shape.queries * shape.width})
      .workspace()
      .output(0)
      .output(problem.outputs.size() > 1 ? 1 : 0)
      .constant(shape)
      .constant(tiling);
}

std::unique_ptr<const Plan> prepare_tiles(const Problem& problem, const PrepareContext& context, bool split) {
  const auto fill = [split](LaunchPlan& plan, const Problem& of, const PrepareContext& on) {
    fill_tiles(plan, of, on, split);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, std::string(), std::nullopt);
}

void fill_attention_direct(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const AttentionShape shape = attention_shape(problem);
  const auto fault = attention_fault(plan, context, shape);
  static const std::string source = std::string(attention_cl) + attention_direct_cl;
  Launch& launch = plan.add({.source = source,
                             .function = "attention_direct",
                             .options = attention_types(problem),
                             .items = shape.batch * shape.heads * shape.queries,
                             .local = is_cpu(context.profile) ? std::size_t{1} : std::size_t{0}});
  bind_attention(launch, problem, fault, shape);
}

Verdict fits_attention_tiles(const Problem& problem, const DeviceProfile& profile, bool split) {
  const AttentionShape shape = attention_shape(problem);
  if (const Verdict any = supports_attention_direct(problem, profile); !any.supported) return any;
  if (shape.width == 0) return Verdict::no("values of size 0");
  const Verdict heads = is_at_most("the head size", std::max(shape.depth, shape.width), largest_head);
  if (!heads.supported) return heads;
  const AttentionTiles tiles = tiles_of(shape, profile, split);
  const Verdict groups = has_work_groups(profile, tiles.group);
  return groups.supported ? has_local_memory(profile, tiles.local_bytes()) : groups;
}

}  // namespace

Verdict supports_attention_direct(const Problem& problem, const DeviceProfile&) {
  using Float = std::numeric_limits<float>;
  const double scale = std::fabs(scale_of(problem));
  if (scale > static_cast<double>(Float::max()) || scale < static_cast<double>(Float::min()))
    return Verdict::no("the scale is outside the range of f32, which this kernel computes in");
  if (problem.outputs.size() > 1 && problem.outputs[1].dtype != DataType::float32)
    return refuse_dtype("the lse", problem.outputs[1].dtype, "f32");
  return Verdict::yes();
}

std::unique_ptr<const Plan> prepare_attention_direct(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_attention_direct);
}

Verdict supports_attention_tiled(const Problem& problem, const DeviceProfile& profile) {
  return fits_attention_tiles(problem, profile, false);
}

std::unique_ptr<const Plan> prepare_attention_tiled(const Problem& problem, const PrepareContext& context) {
  return prepare_tiles(problem, context, false);
}

Verdict supports_attention_single_query(const Problem& problem, const DeviceProfile& profile) {
  constexpr std::int64_t most_queries = 4;
  const Verdict few = is_at_most("queries", problem.inputs[0].shape[2], most_queries);
  return few.supported ? fits_attention_tiles(problem, profile, true) : few;
}

std::uint64_t attention_single_query_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const AttentionShape shape = attention_shape(problem);
  return partial_bytes(shape, tiles_of(shape, profile, true));
}

std::unique_ptr<const Plan> prepare_attention_single_query(const Problem& problem, const PrepareContext& context) {
  return prepare_tiles(problem, context, true);
}

}  // namespace xpuruntime::opencl
