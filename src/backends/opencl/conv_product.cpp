#include <algorithm>
#include <optional>

#include "backends/opencl/conv.h"
#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "xpuruntime/registry/refusals.h"

// Convolutions as matrix products: the weights [channels out, taps] times the windows [taps, pixels].

namespace xpuruntime::opencl {
namespace {

/// How this device multiplies: blocks of panels on CPUs, tiles in local memory elsewhere.
struct Method {
  bool tiles = false;
  Block block = {};

  /// Lines of a panel of a matrix that has this many; tiles read a matrix of one panel.
  std::int64_t row_panel(std::int64_t lines) const { return tiles ? std::max<std::int64_t>(lines, 1) : block.rows; }
  std::int64_t column_panel(std::int64_t lines) const {
    return tiles ? std::max<std::int64_t>(lines, 1) : block.columns;
  }
};

Method method_for(const DeviceProfile& profile) {
  const bool fits =
      largest_group(profile) >= tile_side * tile_side && profile.local_memory_bytes >= tile_local_bytes(1);
  return {fits && !is_cpu(profile), block_for(profile)};
}

std::uint64_t float_bytes(std::int64_t count) {
  return aligned_bytes(static_cast<std::uint64_t>(count) * sizeof(float));
}

/// The stride that walks all pixels, where there is one.
std::optional<std::int64_t> pixel_stride(const Extents& extent, const Extents& stride) {
  std::int64_t one = 1, count = 1;
  for (int d = 2; d >= 0; --d) {
    if (extent[d] == 1) continue;
    if (count == 1) one = stride[d];
    if (stride[d] != one * count) return {};
    count *= extent[d];
  }
  return one;
}

std::int64_t weight_elements(const ConvShape& shape, std::int64_t panel) {
  return shape.groups * panel_elements(shape.out_channels, panel, shape.depth());
}

void add_weights(LaunchPlan& plan, const Problem& problem, const ConvShape& shape, std::int64_t panel) {
  plan.add({.source = conv_source(conv_columns_cl),
            .function = "weight_panels",
            .options = type_option('A', problem.inputs[1].dtype),
            .items = shape.groups * shape.out_channels * shape.depth()})
      .input(1)
      .workspace()
      .constant(shape)
      .constant(panel);
}

/// The product of one group, but for b: a comes from the start of the workspace.
Product product_of_group(const Problem& problem, const ConvShape& shape, std::int64_t panel) {
  Product product;
  product.shape.m = shape.out_channels;
  product.shape.k = shape.depth();
  product.shape.a.row = 1;
  product.shape.a.column = panel;
  product.shape.c.row = shape.y_channel;
  product.shape.d.row = shape.bias_stride;
  product.finish.beta = static_cast<float>(shape.has_bias);
  product.a = in_workspace(0);
  product.c.dtype = problem.outputs[0].dtype;
  product.d = bias_of(problem);
  product.scale[0] = product.scale[1] = product.d;
  return product;
}

void append_dim(ProductShape& shape, std::int64_t extent, std::int64_t a, std::int64_t b, std::int64_t c,
                std::int64_t d) {
  shape.count *= extent;
  shape.extent[shape.rank] = extent;
  shape.a.batch[shape.rank] = a;
  shape.b.batch[shape.rank] = b;
  shape.c.batch[shape.rank] = c;
  shape.d.batch[shape.rank++] = d;
}

void append_groups(Product& product, const ConvShape& shape, std::int64_t panel, std::int64_t b) {
  append_dim(product.shape, shape.groups, panel_elements(shape.out_channels, panel, shape.depth()), b,
             shape.out_channels * shape.y_channel, shape.out_channels * shape.bias_stride);
}

}  // namespace

std::uint64_t conv_implicit_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const ConvShape shape = strided_conv_shape(problem);
  return float_bytes(weight_elements(shape, method_for(profile).row_panel(shape.out_channels)));
}

std::unique_ptr<const Plan> prepare_conv_implicit(const Problem& problem, const PrepareContext& context) {
  const ConvShape shape = strided_conv_shape(problem);
  const Method method = method_for(context.profile);
  const std::int64_t panel = method.row_panel(shape.out_channels);
  Product product = product_of_group(problem, shape, panel);
  product.shape.n = shape.batch * shape.pixels();
  product.b = {Operand::Place::input, 0, problem.inputs[0].dtype};
  append_groups(product, shape, panel, shape.in_channels * shape.x_channel);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), std::string(),
                                           conv_implicit_workspace_bytes(problem, context.profile));
  add_weights(*plan, problem, shape, panel);
  if (method.tiles) {
    add_tiled_product(*plan, product, tile_per_item(product.shape, context.profile), &shape);
  } else {
    add_packed_product(*plan, product, method.block, &shape);
  }
  return plan;
}

Verdict supports_conv_im2col(const Problem& problem, const DeviceProfile& profile) {
  const ConvShape shape = strided_conv_shape(problem);
  if (!pixel_stride(shape.out, shape.y)) return Verdict::no("the pixels of output 0 are not one stride apart");
  return has_modest_windows(problem, profile);
}

namespace {

/// Whether the image is the matrix of windows as it lies.
bool is_plain_product(const ConvShape& shape) {
  return shape.pointwise() && pixel_stride(shape.in, shape.x).has_value();
}

/// All of im2col but its launches; `windows` is where in the workspace they begin.
struct ColumnsProduct {
  Product product = {};
  std::int64_t panel = 0;  // of the windows
  std::uint64_t windows = 0;
  std::uint64_t bytes = 0;
};

ColumnsProduct columns_product(const Problem& problem, const ConvShape& shape, const Method& method) {
  const std::int64_t panel = method.row_panel(shape.out_channels), pixels = shape.pixels();
  ColumnsProduct columns{product_of_group(problem, shape, panel), method.column_panel(pixels), 0, 0};
  Product& product = columns.product;
  columns.windows = float_bytes(weight_elements(shape, panel));
  product.shape.n = pixels;
  product.shape.c.column = pixel_stride(shape.out, shape.y).value_or(1);
  if (is_plain_product(shape)) {
    product.b = {Operand::Place::input, 0, problem.inputs[0].dtype};
    product.shape.b = {shape.x_channel, pixel_stride(shape.in, shape.x).value_or(1), {}};
    append_dim(product.shape, shape.batch, 0, shape.x_batch, shape.y_batch, 0);
    append_groups(product, shape, panel, shape.in_channels * shape.x_channel);
    columns.bytes = columns.windows;
    if (!method.tiles) columns.bytes += column_panel_bytes(product, method.block);
    return columns;
  }
  const std::int64_t one = panel_elements(pixels, columns.panel, shape.depth());
  product.b = in_workspace(columns.windows);
  product.shape.b = {columns.panel, 1, {}};
  append_dim(product.shape, shape.batch, 0, one * shape.groups, shape.y_batch, 0);
  append_groups(product, shape, panel, one);
  columns.bytes = columns.windows + float_bytes(one * shape.groups * shape.batch);
  return columns;
}

void add_windows(LaunchPlan& plan, const Problem& problem, const ConvShape& shape, const Method& method,
                 const ColumnsProduct& columns) {
  const std::int64_t run = method.tiles ? 1 : columns.panel;
  plan.add({.source = conv_source(conv_columns_cl),
            .function = "window_panels",
            .options = type_option('A', problem.inputs[0].dtype) + " -D RUN=" + std::to_string(run),
            .items = shape.batch * shape.groups * shape.taps() * divided_up(shape.pixels(), run),
            .local = method.tiles ? 0 : method.block.group})
      .input(0)
      .workspace(columns.windows)
      .constant(shape)
      .constant(columns.panel);
}

}  // namespace

std::uint64_t conv_im2col_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const Method method = method_for(profile);
  const ColumnsProduct columns = columns_product(problem, strided_conv_shape(problem), method);
  const std::int64_t parts = method.tiles ? parts_for(columns.product.shape, profile) : 1;
  return columns.bytes + (parts == 1 ? 0 : split_workspace_bytes(columns.product.shape, parts));
}

std::unique_ptr<const Plan> prepare_conv_im2col(const Problem& problem, const PrepareContext& context) {
  const ConvShape shape = strided_conv_shape(problem);
  const Method method = method_for(context.profile);
  const ColumnsProduct columns = columns_product(problem, shape, method);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), std::string(),
                                           conv_im2col_workspace_bytes(problem, context.profile));
  add_weights(*plan, problem, shape, method.row_panel(shape.out_channels));
  const bool plain = is_plain_product(shape);
  if (!plain) add_windows(*plan, problem, shape, method, columns);
  const Product& product = columns.product;
  const std::int64_t parts = method.tiles ? parts_for(product.shape, context.profile) : 1;
  if (parts > 1) {
    add_split_product(*plan, product, tile_per_item(product.shape, context.profile), parts, columns.bytes);
  } else if (method.tiles) {
    add_tiled_product(*plan, product, tile_per_item(product.shape, context.profile));
  } else if (plain) {
    add_product_of_rows(*plan, product, method.block, columns.windows);
  } else {
    add_packed_product(*plan, product, method.block);
  }
  return plan;
}

// Winograd.

namespace {

constexpr std::int64_t steps[] = {2, 4};
std::string step_token(std::int64_t step) { return "tile=" + std::to_string(step) + "x" + std::to_string(step); }

/// Where in the workspace what lies, for tiles of this many outputs a side.
struct WinogradLayout {
  std::int64_t side = 0;
  std::int64_t tiles = 0;
  std::int64_t row_panel = 0, column_panel = 0;
  std::int64_t filter_one = 0, input_one = 0;  // elements of one of the matrices
  std::uint64_t inputs = 0, products = 0, bytes = 0;
};

WinogradLayout winograd_layout(const ConvShape& shape, const Method& method, std::int64_t step) {
  WinogradLayout at;
  at.side = step + 2;
  at.tiles = shape.batch * divided_up(shape.out[1], step) * divided_up(shape.out[2], step);
  at.row_panel = method.row_panel(shape.out_channels);
  at.column_panel = method.column_panel(at.tiles);
  at.filter_one = panel_elements(shape.out_channels, at.row_panel, shape.in_channels);
  at.input_one = panel_elements(at.tiles, at.column_panel, shape.in_channels);
  const std::int64_t matrices = at.side * at.side;
  at.inputs = float_bytes(matrices * at.filter_one);
  at.products = at.inputs + float_bytes(matrices * at.input_one);
  at.bytes = at.products + float_bytes(matrices * shape.out_channels * at.tiles);
  return at;
}

Product winograd_product(const ConvShape& shape, const WinogradLayout& at) {
  Product product;
  product.shape.m = shape.out_channels;
  product.shape.n = at.tiles;
  product.shape.k = shape.in_channels;
  product.shape.a = {1, at.row_panel, {}};
  product.shape.b = {at.column_panel, 1, {}};
  product.shape.c = {at.tiles, 1, {}};
  append_dim(product.shape, at.side * at.side, at.filter_one, at.input_one, shape.out_channels * at.tiles, 0);
  product.a = in_workspace(0);
  product.b = in_workspace(at.inputs);
  product.c = in_workspace(at.products);
  product.d = product.scale[0] = product.scale[1] = product.a;
  return product;
}

/// For each pair of channels, in multiplications. The larger tiles need fewer, but hang over the edge of small images,
/// and have more filter values to make: by bench/opencl_choice_bench on a CPU, one costs as much as 20.
std::int64_t winograd_cost(const ConvShape& shape, std::int64_t step) {
  constexpr std::int64_t filter_value = 20;
  const std::int64_t tiles = shape.batch * divided_up(shape.out[1], step) * divided_up(shape.out[2], step);
  return (step + 2) * (step + 2) * (tiles + filter_value);
}

std::int64_t winograd_step(const ConvShape& shape) { return winograd_cost(shape, 4) < winograd_cost(shape, 2) ? 4 : 2; }

}  // namespace

Verdict supports_conv_winograd(const Problem& problem, const DeviceProfile& profile) {
  const ConvShape shape = strided_conv_shape(problem);
  if (problem.op != OpId::conv2d) return Verdict::no("takes 2 spatial dims");
  if (shape.kernel[1] != 3 || shape.kernel[2] != 3) return Verdict::no("the filter is not 3x3");
  if (shape.stride[1] != 1 || shape.stride[2] != 1) return Verdict::no("the stride is not 1");
  if (shape.dilation[1] != 1 || shape.dilation[2] != 1) return Verdict::no("the filter is dilated");
  if (shape.groups != 1) return Verdict::no("there are " + std::to_string(shape.groups) + " groups, and it takes 1");
  if (problem.limits.deterministic)
    return Verdict::no("its sums mix neighbouring windows: a NaN spreads over its tile, and errors are larger");
  return has_modest_windows(problem, profile);
}

std::uint64_t conv_winograd_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  std::uint64_t most = 0;
  for (const std::int64_t step : steps)
    most = std::max(most, winograd_layout(strided_conv_shape(problem), method_for(profile), step).bytes);
  return most;
}

std::vector<std::string> conv_winograd_variants(const Problem&, const PrepareContext&) {
  return {step_token(steps[0]), step_token(steps[1])};
}

std::unique_ptr<const Plan> prepare_conv_winograd_variant(const Problem& problem, const PrepareContext& context,
                                                          std::string_view token) {
  const ConvShape shape = strided_conv_shape(problem);
  const Method method = method_for(context.profile);
  const std::int64_t step = token == step_token(4) ? 4 : 2;
  const WinogradLayout at = winograd_layout(shape, method, step);
  const std::string source = conv_source(conv_winograd_cl);
  // Types that a function does not use are given all the same: one program serves all three, mostly.
  const std::string of_results = " -D STEP=" + std::to_string(step) + type_option('C', problem.outputs[0].dtype) +
                                 type_option('D', bias_of(problem).dtype);
  const std::string options = of_results + type_option('A', problem.inputs[0].dtype);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), step_token(step), at.bytes);
  plan->add({.source = source,
             .function = "winograd_filter",
             .options = of_results + type_option('A', problem.inputs[1].dtype),
             .items = shape.out_channels * shape.in_channels})
      .input(1)
      .workspace()
      .constant(shape)
      .constant(at.row_panel);
  plan->add({.source = source, .function = "winograd_input", .options = options, .items = at.tiles * shape.in_channels})
      .input(0)
      .workspace(at.inputs)
      .constant(shape)
      .constant(at.column_panel);
  const Product product = winograd_product(shape, at);
  if (method.tiles) {
    add_tiled_product(*plan, product, tile_per_item(product.shape, context.profile));
  } else {
    add_packed_product(*plan, product, method.block);
  }
  Launch& last = plan->add(
      {.source = source, .function = "winograd_output", .options = options, .items = at.tiles * shape.out_channels});
  bind(last.workspace(at.products), bias_of(problem)).output(0).constant(shape);
  return plan;
}

std::unique_ptr<const Plan> prepare_conv_winograd(const Problem& problem, const PrepareContext& context) {
  return prepare_conv_winograd_variant(problem, context, step_token(winograd_step(strided_conv_shape(problem))));
}

}  // namespace xpuruntime::opencl
