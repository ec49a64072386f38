#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "backends/opencl/classes.h"
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

  std::int64_t rows() const { return heads / key_heads * queries; }  // that share keys
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

constexpr std::int64_t largest_head = 256;
constexpr std::int64_t most_lines = 1 << 30;  // GPUs count them in 32 bits

/// As in attention.cl.
struct AttentionTiling {
  std::int64_t width = 0;
  std::int64_t tiles = 0;
  std::int64_t parts = 1;
  std::int64_t keys_per_part = 0;
};

/// What a launch is made of.
struct AttentionTiles {
  const char* function = nullptr;
  std::string options = {};
  std::int64_t group = 1;  // work-items
  std::int64_t rows = 1;   // queries of a group
  std::int64_t keys = 1;   // that it takes in at a time
  std::int64_t width = 0;  // of a value, padded
  bool whole = false;      // heads need no padding
  std::uint64_t local_bytes = 0;
  AttentionTiling tiling = {};
};

constexpr std::int64_t up_to_multiple(std::int64_t value, std::int64_t of) {
  return std::max<std::int64_t>(1, divided_up(value, of)) * of;
}

std::string option(const char* name, std::int64_t value) {
  return std::string(" -D ") + name + "=" + std::to_string(value);
}

constexpr std::uint64_t bytes_of_floats(std::int64_t count) {
  return static_cast<std::uint64_t>(count) * sizeof(float);
}

AttentionTiles tiles_on_cpu(const AttentionShape& shape, bool split) {
  AttentionTiles tiles{.function = "attention_tiled", .keys = 32};
  const std::int64_t depth = up_to_multiple(shape.depth, 4);
  tiles.width = up_to_multiple(shape.width, 16);
  const std::int64_t most = std::max(shape.depth, shape.width) <= 128 ? 16 : 8;
  tiles.rows = most;
  for (const std::int64_t fewer : {8, 4, 2}) {
    if (split && shape.rows() <= fewer) tiles.rows = std::min(fewer, most);
  }
  tiles.options = option("ROWS", tiles.rows) + option("DEPTH", depth) + option("WIDTH", tiles.width);
  tiles.local_bytes =
      bytes_of_floats(tiles.rows * depth + tiles.keys * std::max(depth, tiles.width) + tiles.rows * tiles.keys);
  return tiles;
}

/// attention_few.cl
AttentionTiles tiles_of_few(const AttentionShape& shape) {
  AttentionTiles tiles{.function = "attention_few", .group = 128};
  for (tiles.rows = 1; tiles.rows < shape.rows();) tiles.rows *= 2;
  const std::int64_t head = std::max(shape.depth, shape.width);
  // Registers hold the queries, the sums, and the keys that are on their way: 2 vectors of a line, 1 of many queries.
  const std::int64_t floats = tiles.rows == 4 ? 4 : 8, unroll = tiles.rows == 4 || head <= 64 ? 4 : 2;
  const std::int64_t lanes = head <= 8 * floats ? 8 : head <= 16 * floats ? 16 : 32;
  const std::int64_t slots = tiles.group / lanes;
  tiles.keys = slots * unroll;
  const std::int64_t depth = up_to_multiple(shape.depth, 4 * lanes);
  tiles.width = up_to_multiple(shape.width, 4 * lanes);
  tiles.whole = depth == shape.depth && tiles.width == shape.width;
  tiles.options = option("GROUP", tiles.group) + option("ROWS", tiles.rows) + option("LANES", lanes) +
                  option("UNROLL", unroll) + option("DEPTH", depth) + option("WIDTH", tiles.width);
  tiles.local_bytes =
      bytes_of_floats(tiles.rows * unroll * (tiles.group + 4 + slots) + tiles.rows + slots * (tiles.width + 2) + 1);
  return tiles;
}

/// Of attention_block.cl: work-items along keys and along queries, queries of an item, keys.
struct BlockTile {
  std::int64_t tx;
  std::int64_t ty;
  std::int64_t item_rows;
  std::int64_t keys;
};

AttentionTiles tiles_of_block(const AttentionShape& shape, const BlockTile& tile) {
  AttentionTiles tiles{
      .function = "attention_block", .group = tile.tx * tile.ty, .rows = tile.ty * tile.item_rows, .keys = tile.keys};
  // What is in local memory of keys or values at a time are about as many bytes for all heads.
  const auto slices_of = [](std::int64_t head) { return head <= 64 ? 1 : head <= 128 ? 2 : 4; };
  const std::int64_t slices = slices_of(shape.depth), depth = up_to_multiple(shape.depth, 8 * slices);
  const std::int64_t slice = depth / slices, lines = tile.keys / slices_of(shape.width);
  tiles.width = up_to_multiple(shape.width, 4 * tile.tx);
  tiles.whole = depth == shape.depth && tiles.width == shape.width;
  tiles.options = option("TX", tile.tx) + option("TY", tile.ty) + option("RQ", tile.item_rows) +
                  option("KEYS", tile.keys) + option("DEPTH", depth) + option("SLICE", slice) +
                  option("WIDTH", tiles.width) + option("LINES", lines);
  tiles.local_bytes =
      bytes_of_floats(tiles.rows * (depth + 4) + std::max(tile.keys * (slice + 4), lines * tiles.width) +
                      tiles.rows * (tile.keys + 4) + tiles.rows * tile.tx + 4);
  return tiles;
}

AttentionTiles tiles_on_gpu(const AttentionShape& shape, const DeviceProfile& profile, bool split) {
  constexpr std::int64_t most_of_few = 4;
  if (split && shape.rows() <= most_of_few) return tiles_of_few(shape);
  // Each the fastest on an H200 that its local memory holds: for many tiles, for few, then for devices with less of it.
  static constexpr BlockTile few_rows[] = {{16, 8, 1, 64}, {8, 8, 1, 32}};
  static constexpr BlockTile small_heads[] = {
      {8, 16, 4, 32}, {16, 16, 2, 64}, {16, 16, 2, 32}, {8, 16, 2, 32}, {8, 16, 1, 32}};
  static constexpr BlockTile usual_heads[] = {{16, 16, 3, 32}, {16, 16, 2, 32}, {8, 16, 2, 32}, {8, 16, 1, 32}};
  static constexpr BlockTile large_heads[] = {{8, 16, 2, 32}, {8, 16, 1, 32}};
  const std::int64_t head = std::max(shape.depth, shape.width);
  std::span<const BlockTile> candidates = large_heads;
  if (head <= 128) candidates = usual_heads;
  if (head <= 64) candidates = small_heads;
  if (split) candidates = few_rows;
  AttentionTiles tiles;
  for (const BlockTile& tile : candidates) {
    tiles = tiles_of_block(shape, tile);
    const std::int64_t groups = shape.batch * shape.key_heads * divided_up(shape.rows(), tiles.rows);
    const bool enough = split || &tile != candidates.data() || groups >= 4 * profile.compute_units;
    if (enough && tiles.group <= largest_group(profile) && tiles.local_bytes <= profile.local_memory_bytes) break;
  }
  return tiles;
}

AttentionTiles tiles_of(const Problem& problem, const DeviceProfile& profile, bool split) {
  const bool cpu = is_cpu(profile);
  // Tiles of the class, so that nothing is compiled while a sequence grows.
  const AttentionShape any = attention_shape(attention_class(problem).value_or(problem));
  AttentionTiles tiles = cpu ? tiles_on_cpu(any, split) : tiles_on_gpu(any, profile, split);
  const AttentionShape shape = attention_shape(problem);
  AttentionTiling& tiling = tiles.tiling;
  tiling.width = tiles.width;
  tiling.tiles = divided_up(shape.rows(), tiles.rows);
  tiling.keys_per_part = up_to_multiple(shape.keys, tiles.keys);
  if (!split) return tiles;
  // Enough groups for every compute unit, but parts long enough to be worth joining.
  const std::int64_t groups = std::max<std::int64_t>(1, shape.batch * shape.key_heads * tiling.tiles);
  const std::int64_t wanted = divided_up((cpu ? 2 : 4) * std::max(profile.compute_units, 1), groups);
  const std::int64_t longest = cpu ? 256 : 512;
  const std::int64_t parts =
      std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, divided_up(shape.keys, longest)));
  tiling.keys_per_part = up_to_multiple(divided_up(shape.keys, parts), tiles.keys);
  tiling.parts = divided_up(std::max<std::int64_t>(shape.keys, 1), tiling.keys_per_part);
  return tiles;
}

std::uint64_t partial_bytes(const AttentionShape& shape, const AttentionTiling& tiling) {
  if (tiling.parts == 1) return 0;
  return bytes_of_floats(shape.batch * shape.heads * shape.queries * tiling.parts * (tiling.width + 2));
}

/// Whether lines of queries, keys, values and the output are of whole, aligned vectors of 4.
bool in_vectors(const Problem& problem) {
  const auto whole = [](const TensorSpec& spec) {
    bool fits = spec.alignment >= 16 && spec.strides[3] == 1 && spec.shape[3] % 4 == 0;
    for (std::size_t i = 0; i < 3; ++i) fits = fits && (spec.strides[i] % 4 == 0 || spec.shape[i] == 1);
    return fits;
  };
  return std::all_of(problem.inputs.begin(), problem.inputs.begin() + 3, whole) && whole(problem.outputs[0]);
}

std::string_view source_of(const AttentionTiles& tiles) {
  static const std::string tiled = std::string(attention_cl) + attention_tiled_cl;
  static const std::string block = std::string(attention_cl) + attention_gpu_cl + attention_block_cl;
  static const std::string few = std::string(attention_cl) + attention_gpu_cl + attention_few_cl;
  const std::string_view function = tiles.function;
  return function == "attention_tiled" ? tiled : function == "attention_block" ? block : few;
}

void fill_tiles(LaunchPlan& plan, const Problem& problem, const PrepareContext& context, bool split) {
  const AttentionShape shape = attention_shape(problem);
  const AttentionTiles tiles = tiles_of(problem, context.profile, split);
  const AttentionTiling& tiling = tiles.tiling;
  const std::string loads = std::string(in_vectors(problem) ? " -D VECTORS -D ALIGNED" : "") +
                            (tiles.whole ? " -D WHOLE" : "") + (shape.paged ? " -D PAGED" : "");
  const auto fault = attention_fault(plan, context, shape);
  Launch& launch =
      plan.add({.source = source_of(tiles),
                .function = tiles.function,
                .options = attention_types(problem) + tiles.options + (is_cpu(context.profile) ? "" : loads),
                .items = shape.batch * shape.key_heads * tiling.tiles * tiling.parts * tiles.group,
                .local = static_cast<std::size_t>(tiles.group)});
  bind_attention(launch, problem, fault, shape).constant(tiling).workspace();
  if (tiling.parts == 1) return;
  static const std::string join = std::string(attention_cl) + attention_join_cl;
  plan.add({.source = join,
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
  if (!is_cpu(profile)) {
    const Verdict counted =
        is_at_most("keys or queries of heads that share keys", std::max(shape.keys, shape.rows()), most_lines);
    if (!counted.supported) return counted;
  }
  const AttentionTiles tiles = tiles_of(problem, profile, split);
  const Verdict groups = has_work_groups(profile, tiles.group);
  return groups.supported ? has_local_memory(profile, tiles.local_bytes) : groups;
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
  return partial_bytes(attention_shape(problem), tiles_of(problem, profile, true).tiling);
}

std::unique_ptr<const Plan> prepare_attention_single_query(const Problem& problem, const PrepareContext& context) {
  return prepare_tiles(problem, context, true);
}

}  // namespace xpuruntime::opencl
