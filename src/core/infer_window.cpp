#include <algorithm>

#include "core/infer.h"

namespace xpuruntime {
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

std::int64_t positions(const Call& call, const Window& w) {
  if (w.kernel < 1) call.refuse(text_of(w) + ": the kernel is empty; give a kernel size of 1 or more");
  if (w.stride < 1) call.refuse(text_of(w) + ": the stride does not lead forward; give 1 or more");
  if (w.dilation < 1) call.refuse(text_of(w) + ": the dilation does not lead forward; give 1 or more");
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

void check_conv_channels(const Call& call) {
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

Window pool_window(const Call& call, std::size_t i, const Attributes& attributes) {
  Window w;
  w.extent = call.shape(0)[i + 2];
  w.kernel = attributes.list("kernel_size")[i];
  w.stride = attributes.list("stride")[i] == 0 ? w.kernel : attributes.list("stride")[i];
  w.padding = attributes.list("padding")[i];
  w.ceil_mode = attributes.boolean("ceil_mode");
  if (w.kernel == 0) call.refuse("there is no kernel_size; set it");
  // More padding than that would make windows that hold no input at all.
  if (w.padding > w.kernel / 2) call.refuse(text_of(w) + ": the padding is over half the kernel; use less");
  return w;
}

std::vector<TensorSpec> infer_pool(const Call& call, bool dilated) {
  const std::size_t spatial = spatial_rank(call.attributes().op());
  call.need_rank(0, spatial + 2, input_layout(spatial));
  Dims shape = call.shape(0);
  for (std::size_t i = 0; i < spatial; ++i) {
    Window window = pool_window(call, i, call.attributes());
    if (dilated) window.dilation = call.attributes().list("dilation")[i];
    shape[i + 2] = positions(call, window);
  }
  return {make_spec(call[0].dtype, shape)};
}

}  // namespace

std::vector<TensorSpec> infer_conv(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
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
  return {make_spec(product_dtype(inputs), shape)};
}

std::vector<TensorSpec> infer_max_pool(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  call.need_numeric(0);
  return infer_pool(call, true);
}

std::vector<TensorSpec> infer_avg_pool(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  call.need_floating(0);
  return infer_pool(call, false);
}

}  // namespace xpuruntime
