#include "backends/opencl/product.h"

#include <algorithm>

#include "backends/opencl/conv.h"
#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t operands = 4;
using Walks = std::array<Walk*, operands>;
Walks walks_of(ProductShape& shape) { return {&shape.a, &shape.b, &shape.c, &shape.d}; }

/// Appends a batch dim; one that all operands walk through together with the last is merged with it.
void append_batch(ProductShape& shape, std::int64_t extent, const std::array<std::int64_t, operands>& strides) {
  shape.count *= extent;
  if (extent == 1) return;
  const Walks walks = walks_of(shape);
  const std::int64_t last = shape.rank - 1;
  bool merges = last >= 0;
  for (std::size_t i = 0; merges && i < operands; ++i) merges = walks[i]->batch[last] == strides[i] * extent;
  const std::int64_t at = merges ? last : shape.rank++;
  shape.extent[at] = merges ? shape.extent[at] * extent : extent;
  for (std::size_t i = 0; i < operands; ++i) walks[i]->batch[at] = strides[i];
}

/// The last batch dims become rows where b is the same for them and the others walk on as along the rows.
void fold_batches(ProductShape& shape) {
  while (shape.rank > 0) {
    const std::int64_t last = shape.rank - 1;
    if (shape.b.batch[last] != 0) return;
    for (Walk* walk : {&shape.a, &shape.c, &shape.d}) {
      if (shape.m != 1 && walk->batch[last] != shape.m * walk->row) return;
    }
    for (Walk* walk : {&shape.a, &shape.c, &shape.d}) {
      if (shape.m == 1) walk->row = walk->batch[last];
      walk->batch[last] = 0;
    }
    shape.m *= shape.extent[last];
    shape.count /= std::max<std::int64_t>(shape.extent[last], 1);
    shape.rank = last;
  }
}

struct Matrices {
  Dims a, b, c, d;  // strides over the output's batch dims
};

/// Strides of an operand's batch dims, where its last `matrix` dims are those of the matrix.
Dims batch_strides(const Dims& batch, const TensorSpec& spec, std::size_t matrix) {
  const std::size_t rank = spec.shape.size() - matrix;
  return broadcast_strides(batch, Dims(std::span(spec.shape.data(), rank)), Dims(std::span(spec.strides.data(), rank)));
}

ProductShape matrices_of(const Problem& problem, bool added) {
  const TensorSpec &a = problem.inputs[0], &b = problem.inputs[1], &c = problem.outputs[0];
  const MatmulShape from = matmul_shape(problem);
  const std::size_t a_dims = std::min<std::size_t>(a.shape.size(), 2),
                    b_dims = std::min<std::size_t>(b.shape.size(), 2);
  const std::size_t c_dims = a_dims + b_dims - 2;
  const Dims batch(std::span(c.shape.data(), c.shape.size() - c_dims));
  ProductShape shape;
  shape.m = from.m;
  shape.n = from.n;
  shape.k = from.k;
  shape.a = {from.a.row, from.a.column, {}};
  shape.b = {from.b.row, from.b.column, {}};
  shape.c = {from.c.row, from.c.column, {}};
  Dims d_strides = Dims::filled(c.shape.size(), 0);
  if (added) d_strides = broadcast_strides(c.shape, problem.inputs[2].shape, problem.inputs[2].strides);
  if (b_dims == 2) shape.d.column = d_strides.back();
  if (a_dims == 2) shape.d.row = d_strides[batch.size()];
  const Dims a_strides = batch_strides(batch, a, a_dims), b_strides = batch_strides(batch, b, b_dims);
  for (std::size_t i = 0; i < batch.size(); ++i)
    append_batch(shape, batch[i], {a_strides[i], b_strides[i], c.strides[i], d_strides[i]});
  return shape;
}

/// x[..., in] and weight[out, in]: the last leading dim of x is the rows, those before it are batch dims.
ProductShape layer_of(const Problem& problem, bool added) {
  const TensorSpec &x = problem.inputs[0], &weight = problem.inputs[1], &out = problem.outputs[0];
  const std::size_t last = x.shape.size() - 1;
  ProductShape shape;
  shape.n = weight.shape[0];
  shape.k = weight.shape[1];
  shape.a.column = x.strides[last];
  shape.b = {weight.strides[1], weight.strides[0], {}};
  shape.c.column = out.strides[last];
  if (added) shape.d.column = problem.inputs[2].strides[0];
  if (last == 0) return shape;
  shape.m = x.shape[last - 1];
  shape.a.row = x.strides[last - 1];
  shape.c.row = out.strides[last - 1];
  for (std::size_t i = 0; i + 1 < last; ++i) append_batch(shape, x.shape[i], {x.strides[i], 0, out.strides[i], 0});
  return shape;
}

std::int32_t activation_of(std::string_view name) {
  constexpr std::string_view names[] = {"none", "relu", "gelu", "silu"};
  return static_cast<std::int32_t>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

/// As in product_block.cl.
struct Pack {
  std::int64_t lines = 0;
  std::int64_t line_stride = 0;
  std::int64_t steps = 0;
  std::int64_t step_stride = 0;
  std::int64_t steps_per_item = 128;
  std::int64_t count = 1;
  std::int64_t rank = 0;
  std::int64_t extent[max_batch_dims] = {};
  std::int64_t batch[max_batch_dims] = {};
};

/// How an operand is packed: batches that it repeats are packed once. `packed` gets the panels' strides.
Pack pack_of(const ProductShape& shape, const Walk& walk, std::int64_t one, Walk& packed) {
  Pack pack;
  for (std::int64_t i = 0; i < shape.rank; ++i) {
    if (walk.batch[i] == 0) continue;
    pack.extent[pack.rank] = shape.extent[i];
    pack.batch[pack.rank++] = walk.batch[i];
  }
  packed = {};
  for (std::int64_t i = shape.rank - 1; i >= 0; --i) {
    if (walk.batch[i] == 0) continue;
    packed.batch[i] = pack.count * one;
    pack.count *= shape.extent[i];
  }
  return pack;
}

struct Packed {
  Product product = {};
  Pack a = {};
  Pack b = {};
  std::uint64_t a_bytes = 0;
  std::uint64_t b_bytes = 0;
};

Packed packed(const Product& product, const Block& block) {
  const ProductShape& shape = product.shape;
  Packed result{product, {}, {}, 0, 0};
  const std::int64_t a_one = panel_elements(shape.m, block.rows, shape.k);
  const std::int64_t b_one = panel_elements(shape.n, block.columns, shape.k);
  result.a = pack_of(shape, shape.a, a_one, result.product.shape.a);
  result.a.lines = shape.m;
  result.a.line_stride = shape.a.row;
  result.a.step_stride = shape.a.column;
  result.b = pack_of(shape, shape.b, b_one, result.product.shape.b);
  result.b.lines = shape.n;
  result.b.line_stride = shape.b.column;
  result.b.step_stride = shape.b.row;
  result.a.steps = result.b.steps = shape.k;
  result.a_bytes = aligned_bytes(static_cast<std::uint64_t>(result.a.count * a_one) * sizeof(float));
  result.b_bytes = aligned_bytes(static_cast<std::uint64_t>(result.b.count * b_one) * sizeof(float));
  return result;
}

void add_pack(LaunchPlan& plan, const Operand& from, std::uint64_t to, const Pack& pack, std::int64_t panel,
              std::size_t group) {
  const std::int64_t items = pack.count * divided_up(pack.lines, panel) * divided_up(pack.steps, pack.steps_per_item);
  Launch& launch = plan.add({.source = product_source(product_block_cl),
                             .function = "pack",
                             .options = type_option('A', from.dtype) + " -D PANEL=" + std::to_string(panel),
                             .items = items,
                             .local = group});
  bind(launch, from).workspace(to).constant(pack);
}

}  // namespace

Launch& bind(Launch& launch, const Operand& operand) {
  if (operand.place == Operand::Place::input) return launch.input(operand.index);
  if (operand.place == Operand::Place::output) return launch.output(operand.index);
  return launch.workspace(operand.index, size_of(operand.dtype));
}

Product product_of(const Problem& problem) {
  const bool linear = problem.op == OpId::linear;
  Product product;
  product.a.dtype = problem.inputs[0].dtype;
  product.b.dtype = problem.inputs[1].dtype;
  product.c.dtype = problem.outputs[0].dtype;
  product.d = product.scale[0] = product.scale[1] = product.a;
  Finish& finish = product.finish;
  if (has_input(problem.inputs, 2)) finish.beta = linear ? 1 : static_cast<float>(problem.attributes.real("beta"));
  if (finish.beta != 0) product.d = {Operand::Place::input, 2, problem.inputs[2].dtype};
  if (linear) finish.activation = activation_of(problem.attributes.choice("activation"));
  if (!linear) finish.alpha = static_cast<float>(problem.attributes.real("alpha"));
  for (const std::size_t side : {0, 1}) {
    if (!has_input(problem.inputs, 3 + side)) continue;
    const TensorSpec& scale = problem.inputs[3 + side];
    product.scale[side] = {Operand::Place::input, 3 + side};
    finish.scaled |= 1 << side;
    finish.scale_stride[side] = element_count(scale) == 1 ? 0 : scale.strides[0];
  }
  product.shape = linear ? layer_of(problem, finish.beta != 0) : matrices_of(problem, finish.beta != 0);
  if (finish.scale_stride[0] == 0) fold_batches(product.shape);  // rows of one product have a scale each
  return product;
}

std::string product_types(const Product& product) {
  return type_option('A', product.a.dtype) + type_option('B', product.b.dtype) + type_option('C', product.c.dtype) +
         type_option('D', product.d.dtype);
}

std::string long_sums_option(const Product& product, std::int64_t longest) {
  return product.shape.k > longest ? " -D LONG_SUMS=1024" : "";
}

std::string product_source(const char* source) { return std::string(product_cl) + source; }

Launch& bind_finish(Launch& launch, const Product& product) {
  for (const Operand& operand : {product.d, product.scale[0], product.scale[1]}) bind(launch, operand);
  return launch.constant(product.finish).constant(product.shape);
}

std::uint64_t block_workspace_bytes(const Product& product, const Block& block) {
  const Packed both = packed(product, block);
  return both.a_bytes + both.b_bytes;
}

void add_block_product(LaunchPlan& plan, const Product& product, const Block& block, std::uint64_t workspace) {
  Packed both = packed(product, block);
  add_pack(plan, product.a, workspace, both.a, block.rows, block.group);
  both.product.a = in_workspace(workspace);
  add_pack(plan, product.b, workspace + both.a_bytes, both.b, block.columns, block.group);
  both.product.b = in_workspace(workspace + both.a_bytes);
  add_packed_product(plan, both.product, block);
}

void add_product_of_rows(LaunchPlan& plan, const Product& product, const Block& block, std::uint64_t workspace) {
  Packed both = packed(product, block);
  add_pack(plan, product.b, workspace, both.b, block.columns, block.group);
  both.product.b = in_workspace(workspace);
  both.product.shape.a = product.shape.a;
  add_packed_product(plan, both.product, block);
}

std::uint64_t column_panel_bytes(const Product& product, const Block& block) { return packed(product, block).b_bytes; }

void add_packed_product(LaunchPlan& plan, const Product& product, const Block& block, const ConvShape* conv) {
  const ProductShape& shape = product.shape;
  constexpr std::int64_t cached = 64 << 10;  // floats of a that stay near while b goes by
  const std::int64_t together = std::max<std::int64_t>(1, cached / std::max<std::int64_t>(1, shape.k * block.rows));
  std::string options = type_option('C', product.c.dtype) + type_option('D', product.d.dtype) +
                        " -D ROWS=" + std::to_string(block.rows) + " -D COLUMNS=" + std::to_string(block.columns);
  options += conv != nullptr ? type_option('B', product.b.dtype) + " -D CONV" : long_sums_option(product);
  Launch& launch =
      plan.add({.source = conv == nullptr ? product_source(product_block_cl) : conv_source(product_block_cl),
                .function = "product_block",
                .options = options,
                .items = shape.count * divided_up(shape.m, block.rows) * divided_up(shape.n, block.columns),
                .local = block.group});
  bind(bind(bind(launch, product.a), product.b), product.c);
  bind_finish(launch, product).constant(together);
  if (conv != nullptr) launch.constant(*conv);
}

Block block_for(const DeviceProfile& profile) {
  Block block;
  if (!is_cpu(profile)) block.group = static_cast<std::size_t>(std::min<std::int64_t>(64, largest_group(profile)));
  return block;
}

std::int64_t largest_per_item(const DeviceProfile& profile) {
  for (const std::int64_t per_item : {8, 4}) {
    // A CPU has no registers for 8x8 sums of each item of a group.
    if (per_item == 8 && is_cpu(profile)) continue;
    if (profile.local_memory_bytes >= tile_local_bytes(per_item)) return per_item;
  }
  return 1;
}

namespace {
std::int64_t tile_count(const ProductShape& shape, std::int64_t per_item) {
  const std::int64_t tile = tile_side * per_item;
  return shape.count * divided_up(shape.m, tile) * divided_up(shape.n, tile);
}
}  // namespace

std::int64_t tile_per_item(const ProductShape& shape, const DeviceProfile& profile) {
  const std::int64_t most = largest_per_item(profile);
  // Every compute unit should have a tile.
  const std::int64_t large = tile_side * 8;
  if (most == 8 && shape.m >= large && shape.n >= large && tile_count(shape, 8) >= profile.compute_units) return 8;
  // An element of a small tile costs five times as much.
  const std::int64_t medium = tile_side * 4;
  const bool mostly_full = 4 * shape.count * shape.m * shape.n >= tile_count(shape, 4) * medium * medium;
  return most >= 4 && mostly_full ? 4 : 1;
}

std::int64_t parts_for(const ProductShape& shape, const DeviceProfile& profile) {
  const std::int64_t tiles = std::max<std::int64_t>(1, tile_count(shape, tile_per_item(shape, profile)));
  std::int64_t parts = 1;
  for (const std::int64_t more : part_counts) {
    if (tiles * parts < 2 * profile.compute_units && shape.k >= 128 * more) parts = more;
  }
  return tiles >= profile.compute_units ? 1 : parts;
}

void add_tiled_product(LaunchPlan& plan, const Product& product, std::int64_t per_item, const ConvShape* conv) {
  const ProductShape& shape = product.shape;
  const std::int64_t tile = tile_side * per_item, group = tile_side * tile_side;
  Launch& launch =
      plan.add({.source = conv == nullptr ? product_source(product_tiled_cl) : conv_source(product_tiled_cl),
                .function = "product_tiled",
                .options = product_types(product) + " -D ALIGNED -D PER=" + std::to_string(per_item) +
                           (conv == nullptr ? "" : " -D CONV") + long_sums_option(product, 16384),
                .items = shape.count * divided_up(shape.m, tile) * divided_up(shape.n, tile) * group,
                .local = static_cast<std::size_t>(group)});
  bind(bind(bind(launch, product.a), product.b), product.c);
  bind_finish(launch, product);
  if (conv != nullptr) launch.constant(*conv);
}

std::uint64_t split_workspace_bytes(const ProductShape& shape, std::int64_t parts) {
  return aligned_bytes(static_cast<std::uint64_t>(parts * shape.count * shape.m * shape.n) * sizeof(float));
}

void add_split_product(LaunchPlan& plan, const Product& product, std::int64_t per_item, std::int64_t parts,
                       std::uint64_t workspace) {
  const ProductShape& whole = product.shape;
  Product partial;
  partial.a = product.a;
  partial.b = product.b;
  partial.c = in_workspace(workspace);
  partial.d = partial.scale[0] = partial.scale[1] = product.a;
  ProductShape& shape = partial.shape;
  shape.m = whole.m;
  shape.n = whole.n;
  shape.k = divided_up(whole.k, parts);
  shape.k_total = whole.k;
  shape.count = whole.count * parts;
  shape.rank = whole.rank + 1;
  shape.a = {whole.a.row, whole.a.column, {shape.k * whole.a.column}};
  shape.b = {whole.b.row, whole.b.column, {shape.k * whole.b.row}};
  shape.c = {whole.n, 1, {whole.count * whole.m * whole.n}};
  shape.extent[0] = parts;
  std::int64_t one = whole.m * whole.n;
  for (std::int64_t i = whole.rank - 1; i >= 0; --i) {
    shape.extent[i + 1] = whole.extent[i];
    shape.a.batch[i + 1] = whole.a.batch[i];
    shape.b.batch[i + 1] = whole.b.batch[i];
    shape.c.batch[i + 1] = one;
    one *= whole.extent[i];
  }
  add_tiled_product(plan, partial, per_item);
  Launch& launch = plan.add({.source = product_source(matmul_split_cl),
                             .function = "sum_parts",
                             .options = type_option('C', product.c.dtype) + type_option('D', product.d.dtype),
                             .items = whole.count * whole.m * whole.n});
  bind_finish(bind(launch.workspace(workspace), product.c), product).constant(parts);
}

}  // namespace xpuruntime::opencl
