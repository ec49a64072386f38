
#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

// Holds sums and products of two extents or attributes. Unsigned, as clang's overflow checks of signed 128-bit products
// need a function that only its own runtime has.
__extension__ using Wide = unsigned __int128;

// A window that slides along one dim.
struct Window {
  std::int64_t extent = 0;
  std::int64_t kernel = 0;
  std::int64_t stride = 1;
  std::int64_t padding = 0;
  std::int64_t dilation = 1;
  bool ceil_mode = false;
};

std::string text_of(const Window& w) {
  return "extent " + std::to_string(w.extent) + " with kernel " + std::to_string(w.kernel) + ", stride " +
         std::to_string(w.stride) + ", padding " + std::to_string(w.padding) + ", dilation " +
         std::to_string(w.dilation);
}

std::int64_t positions(const ForwardCall& call, const Window& w) {
  if (w.kernel < 1) call.refuse(text_of(w) + ": the kernel is empty; give a kernel size of 1 or more");
  if (w.stride < 1) call.refuse(text_of(w) + ": the stride is not positive; give 1 or more");
  if (w.dilation < 1) call.refuse(text_of(w) + ": the dilation is not positive; give 1 or more");
  if (w.padding < 0) call.refuse(text_of(w) + ": the padding is negative; give 0 or more, or slice the input first");
  if (w.extent < 1) call.refuse(text_of(w) + ": the input is empty there; give at least one element");
  const auto wide = [](std::int64_t value) { return static_cast<Wide>(value); };
  const Wide reach = wide(w.dilation) * wide(w.kernel - 1) + 1;
  const Wide padded = wide(w.extent) + 2 * wide(w.padding);
  if (padded < reach) {
    call.refuse(text_of(w) + ": the kernel is larger than the padded input; use more padding or a smaller kernel");
  }
  const Wide room = padded - reach;
  Wide count = room / wide(w.stride) + 1;
  if (w.ceil_mode && room % wide(w.stride) != 0) {
    // A last, partial window counts only where it starts inside the input or its left padding.
    if (count * wide(w.stride) < wide(w.extent) + wide(w.padding)) ++count;
  }
  if (count > wide(INT64_MAX)) call.refuse(text_of(w) + ": the result does not fit 63 bits; use less padding");
  return static_cast<std::int64_t>(count);
}

std::size_t spatial_rank(OpId op) {
  return op == OpId::conv3d || op == OpId::max_pool3d || op == OpId::avg_pool3d ? 3 : 2;
}

std::string_view input_layout(std::size_t spatial) {
  return spatial == 3 ? "[batch, channels, depth, height, width]" : "[batch, channels, height, width]";
}

void check_conv_channels(const ForwardCall& call) {
  const std::int64_t groups = call.attributes().integer("groups");
  const std::int64_t channels = call.shape(0)[1];
  const Dims& weight = call.shape(1);
  if (groups < 1) call.refuse("groups is " + std::to_string(groups) + "; give 1 or more");
  if (channels % groups != 0 || weight[0] % groups != 0) {
    call.refuse(std::to_string(groups) + " groups do not divide the " + std::to_string(channels) + " input and " +
                std::to_string(weight[0]) + " output channels; use a common divisor");
  }
  if (weight[1] != channels / groups) {
    call.refuse("the weight takes " + std::to_string(weight[1]) + " channels a group and the input has " +
                std::to_string(channels / groups) + "; make them equal");
  }
}

Window pool_window(const ForwardCall& call, std::size_t i, const Attributes& attributes) {
  Window w;
  w.extent = call.shape(0)[i + 2];
  w.kernel = attributes.list("kernel_size")[i];
  w.stride = attributes.list("stride")[i] == 0 ? w.kernel : attributes.list("stride")[i];
  w.padding = attributes.list("padding")[i];
  w.ceil_mode = attributes.boolean("ceil_mode");
  if (w.kernel == 0) call.refuse("kernel_size is 0 or not set; give 1 or more");
  // More padding than that would make windows that hold no input at all.
  if (w.padding > w.kernel / 2) call.refuse(text_of(w) + ": the padding is over half the kernel; use less");
  return w;
}

Specs infer_pool(const ForwardCall& call, bool dilated) {
  const std::size_t spatial = spatial_rank(call.attributes().op());
  call.need_rank(0, spatial + 2, input_layout(spatial));
  Dims shape = call.shape(0);
  for (std::size_t i = 0; i < spatial; ++i) {
    Window window = pool_window(call, i, call.attributes());
    if (dilated) window.dilation = call.attributes().list("dilation")[i];
    shape[i + 2] = positions(call, window);
  }
  return {like_image(call[0], call[0].dtype, shape)};
}

Specs infer_conv(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const std::size_t spatial = spatial_rank(attributes.op());
  for (std::size_t i = 0; i < call.size(); ++i) call.need_numeric(i);
  call.need_rank(0, spatial + 2, input_layout(spatial));
  call.need_rank(1, spatial + 2,
                 spatial == 3 ? "[out, in / groups, depth, height, width]" : "[out, in / groups, height, width]");
  check_conv_channels(call);
  if (call.size() == 3) call.need_shape(2, {call.shape(1)[0]}, "bias");
  Dims shape = call.shape(0);
  shape[1] = call.shape(1)[0];
  for (std::size_t i = 0; i < spatial; ++i) {
    shape[i + 2] = positions(call, {call.shape(0)[i + 2], call.shape(1)[i + 2], attributes.list("stride")[i],
                                    attributes.list("padding")[i], attributes.list("dilation")[i]});
  }
  // Only where all of it can be computed so: else the result would be copied once more.
  const TensorSpec &input = call[0], &weight = call[1];
  const bool keeps = has_channels_last(input) && has_channels_last(weight);
  const DataType dtype = product_dtype(inputs);
  return {keeps ? like_image(input, dtype, shape) : make_spec(dtype, shape)};
}

Specs infer_max_pool(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_numeric(0);
  return infer_pool(call, true);
}

Specs infer_avg_pool(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  call.need_floating(0);
  return infer_pool(call, false);
}

Sizes spatial(const Dims& shape) { return Sizes(shape.begin() + 2, shape.end()); }
Sizes image(const Problem& problem) { return spatial(problem.inputs[0].shape); }
Sizes kernel(const Problem& problem) { return spatial(problem.inputs[1].shape); }
Sizes output(const Problem& problem) { return spatial(problem.outputs[0].shape); }

// What an op over images and the same over volumes have in common, by the number of dims that their windows slide
// along.
template <std::uint8_t dims>
struct Family {
  static constexpr bool flat = dims == 2;

  static constexpr AttributeSpec conv_attributes[] = {fixed_list("stride", dims, 1), fixed_list("padding", dims, 0),
                                                      fixed_list("dilation", dims, 1), integer("groups", 1)};
  static constexpr AttributeSpec stride = fixed_list("stride", dims, 0, "0: the kernel size");
  static constexpr AttributeSpec max_attributes[] = {fixed_list("kernel_size", dims, 0, "required"), stride,
                                                     fixed_list("padding", dims, 0), fixed_list("dilation", dims, 1),
                                                     boolean("ceil_mode")};
  static constexpr AttributeSpec avg_attributes[] = {fixed_list("kernel_size", dims, 0, "required"), stride,
                                                     fixed_list("padding", dims, 0), boolean("ceil_mode"),
                                                     boolean("count_include_pad", true)};

  static constexpr SizeSpec image_size = sizes(
      "image", dims, image, flat ? "height and width of the input" : "depth, height and width of the input", varies);
  static constexpr SizeSpec output_size =
      sizes("output", dims, output, flat ? "height and width of the output" : "depth, height and width of the output",
            varies);
  static constexpr SizeSpec pool_sizes[] = {image_size, output_size};
  static constexpr SizeSpec conv_sizes[] = {
      size("batch", extent<0, 0>, flat ? "images" : "volumes", varies),
      size("in_channels", extent<0, 1>, "channels that go in"),
      size("out_channels", extent<1, 0>, "channels that come out"),
      size("group_channels", extent<1, 1>, "input channels of one group; 1: depthwise"),
      sizes("kernel", dims, kernel, flat ? "height and width of the filter" : "depth, height and width of the filter"),
      image_size,
      output_size};

  static constexpr std::string_view sample =
      flat ? "T[1,32,16,16]; kernel_size=2,2" : "T[1,32,8,16,16]; kernel_size=2,2,2";
};

constexpr InputSpec conv_inputs[] = {{.name = "input"}, {.name = "weight"}, {.name = "bias", .optional = true}};
constexpr InputSpec pool_inputs[] = {{.name = "input"}};
constexpr std::string_view conv_parameters =
    "input, weight, bias, stride, padding: int | Sequence[int] | str = 0, dilation, groups";
constexpr std::string_view max_parameters = "input, kernel_size=..., stride=None, padding, dilation, ceil_mode";
constexpr std::string_view avg_parameters =
    "input, kernel_size=..., stride=None, padding, ceil_mode, count_include_pad";

template <std::uint8_t dims>
constexpr OpInfo conv_row(Id id, std::string_view name, std::string_view aliases, std::string_view summary) {
  return {.id = id,
          .name = name,
          .aliases = aliases,
          .category = Kind::matrix,
          .summary = summary,
          .inputs = conv_inputs,
          .attributes = Family<dims>::conv_attributes,
          .infer = infer_conv,
          .sizes = Family<dims>::conv_sizes,
          .sample =
              dims == 2 ? "T[1,32,16,16], T[32,32,3,3]; padding=1,1" : "T[1,32,8,16,16], T[32,32,3,3,3]; padding=1,1,1",
          .rounding = Rounding::products,
          .autocast = lower,
          .parameters = conv_parameters};
}

template <std::uint8_t dims>
constexpr OpInfo pool_row(Id id, std::string_view name, std::string_view aliases, std::string_view summary, bool max) {
  OpInfo row{.id = id,
             .name = name,
             .aliases = aliases,
             .category = Kind::pooling,
             .summary = summary,
             .inputs = pool_inputs,
             .attributes = Family<dims>::avg_attributes,
             .infer = infer_avg_pool,
             .sizes = Family<dims>::pool_sizes,
             .sample = Family<dims>::sample,
             .rounding = Rounding::mean,
             .autocast = lower,
             .parameters = avg_parameters};
  if (!max) return row;
  row.attributes = Family<dims>::max_attributes;
  row.infer = infer_max_pool;
  row.rounding = Rounding::exact;
  row.parameters = max_parameters;
  return row;
}

constexpr OpInfo rows[] = {
    conv_row<2>(Id::conv2d, "conv2d", "conv", "Convolves images with filters, and adds the bias."),
    conv_row<3>(Id::conv3d, "conv3d", "", "Convolves volumes with filters, and adds the bias."),
    pool_row<2>(Id::max_pool2d, "max_pool2d", "", "Takes the largest element of each window of an image.", true),
    pool_row<3>(Id::max_pool3d, "max_pool3d", "", "Takes the largest element of each window of a volume.", true),
    pool_row<2>(Id::avg_pool2d, "avg_pool2d", "average_pool2d", "Takes the mean of each window of an image.", false),
    pool_row<3>(Id::avg_pool3d, "avg_pool3d", "average_pool3d", "Takes the mean of each window of a volume.", false),
};

}  // namespace

std::span<const OpInfo> window() { return rows; }

}  // namespace xpuruntime::op_rows
