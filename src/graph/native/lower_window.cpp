#include <algorithm>
#include <limits>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"
#include "graph/native/quantized.h"
#include "graph/native/window.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {
Window window_of(const NodeCall& call, const Sizes& kernel) {
  const std::size_t dims = kernel.size();
  const Dims& shape = call.shape(0);
  if (shape.size() != dims + 2) {
    fail(ErrorCode::invalid_argument, "Session",
         "the input " + to_string(shape) + " has not " + std::to_string(dims) + " dims beside batch and channels");
  }
  Window window{.kernel = kernel,
                .stride = call.list("strides").value_or(Sizes(dims, 1)),
                .dilation = call.list("dilations").value_or(Sizes(dims, 1)),
                .before = Sizes(dims, 0),
                .after = Sizes(dims, 0),
                .ceil = call.integer("ceil_mode", 0) != 0};
  const Sizes pads = call.list("pads").value_or(Sizes(2 * dims, 0));
  if (window.stride.size() != dims || window.dilation.size() != dims || pads.size() != 2 * dims) {
    call.wrong("strides, dilations or pads of another length than the kernel");
  }
  constexpr std::int64_t most = std::int64_t{1} << 30;
  const auto within = [](const Sizes& sizes, std::int64_t least) {
    return std::all_of(sizes.begin(), sizes.end(), [=](std::int64_t n) { return n >= least && n <= most; });
  };
  if (!within(window.stride, 1) || !within(window.dilation, 1) || !within(kernel, 1) || !within(pads, 0)) {
    call.wrong("a kernel, stride or dilation that is not positive, negative pads, or more than 30 bits of any");
  }
  const std::string mode = call.text("auto_pad", "NOTSET");
  for (std::size_t d = 0; d < dims; ++d) {
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      const std::int64_t extent = shape[d + 2], reach = window.dilation[d] * (kernel[d] - 1) + 1;
      const std::int64_t steps = (extent + window.stride[d] - 1) / window.stride[d];
      const std::int64_t total = std::max<std::int64_t>((steps - 1) * window.stride[d] + reach - extent, 0);
      const std::int64_t less = total / 2, more = total - less;
      window.before[d] = mode == "SAME_UPPER" ? less : more;
      window.after[d] = mode == "SAME_UPPER" ? more : less;
    } else if (mode == "NOTSET") {
      window.before[d] = pads[d];
      window.after[d] = pads[dims + d];
    } else if (mode != "VALID") {
      call.lacks("auto_pad " + mode);
    }
  }
  return window;
}

namespace {

/// The images with both sides filled up.
int padded(Builder& builder, int slot, Window& window, double value) {
  for (std::size_t d = 0; d < window.before.size(); ++d) {
    slot = Calls{builder}.padded(slot, d + 2, window.before[d], window.after[d], value);
  }
  std::fill(window.before.begin(), window.before.end(), 0);
  std::fill(window.after.begin(), window.after.end(), 0);
  return slot;
}

/// One dim becomes a plane of height 1.
int as_plane(Builder& builder, int slot) {
  const Dims& line = builder.shape(slot);
  return builder.reshaped(slot, {line[0], line[1], 1, line[2]});
}
int as_line(Builder& builder, int slot) {
  const Dims& plane = builder.shape(slot);
  return builder.reshaped(slot, {plane[0], plane[1], plane[3]});
}
void widen(Window& window) {
  for (Sizes* one : {&window.kernel, &window.stride, &window.dilation}) one->insert(one->begin(), 1);
  for (Sizes* one : {&window.before, &window.after}) one->insert(one->begin(), 0);
}

/// That of a convolution by this filter.
Window window_of_filter(const NodeCall& call, const Dims& filter) {
  if (filter.size() < 3 || filter.size() > 5) call.lacks("images of " + std::to_string(filter.size()) + " - 2 dims");
  return window_of(call, Sizes(filter.begin() + 2, filter.end()));
}

Slots conv(const NodeCall& call) {
  const int bias = call.has(2) ? call[2] : -1;
  if (const auto quantized = conv_of_codes(call, bias)) return {*quantized};
  return {convolved(call, call[0], call[1], bias)};
}

}  // namespace

bool pads_images(const NodeCall& call, int weight) {
  const Window window = window_of_filter(call, call.builder.shape(weight));
  const Sizes none(window.kernel.size(), 0);
  return window.before != none || window.after != none;
}

int convolved(const NodeCall& call, int x, int weight, int bias, double around) {
  Builder& builder = call.builder;
  Window window = window_of_filter(call, builder.shape(weight));
  if (!window.is_even() || around != 0) x = padded(builder, x, window, around);
  const bool is_line = window.kernel.size() == 1;
  if (is_line) {
    x = as_plane(builder, x);
    weight = as_plane(builder, weight);
    widen(window);
  }
  const OpId op = window.kernel.size() == 2 ? OpId::conv2d : OpId::conv3d;
  Attributes attributes(op);
  attributes.set_list("stride", window.stride).set_list("padding", window.before).set_list("dilation", window.dilation);
  attributes.set("groups", call.integer("group", 1));
  Slots inputs = {x, weight};
  if (bias >= 0) inputs.push_back(bias);
  const int result = builder.call(op, inputs, &attributes);
  return is_line ? as_line(builder, result) : result;
}

namespace {

/// Where the op's own padding cannot do it: sides that differ, or more than half the window.
bool needs_padding(const Window& window) {
  bool wide = false;
  for (std::size_t d = 0; d < window.kernel.size(); ++d) wide = wide || 2 * window.before[d] > window.kernel[d];
  return wide || !window.is_even();
}

Attributes pool_attributes(OpId op, const Window& window, bool counts_padding) {
  Attributes attributes(op);
  attributes.set_list("kernel_size", window.kernel)
      .set_list("stride", window.stride)
      .set_list("padding", window.before);
  attributes.set("ceil_mode", window.ceil);
  if (op == OpId::max_pool2d || op == OpId::max_pool3d) {
    attributes.set_list("dilation", window.dilation);
  } else {
    attributes.set("count_include_pad", counts_padding);
  }
  return attributes;
}

/// Averages that leave out padding which the op itself cannot put: those of all, over the share that is no padding.
int average_without_padding(Builder& builder, int x, Window window, OpId op) {
  const Calls calls{builder};
  Dims image = builder.shape(x);
  image[0] = image[1] = 1;
  Window same = window;
  const int ones = padded(builder, builder.contiguous(builder.broadcast(calls.number(1, x), image)), same, 0);
  const int all = padded(builder, x, window, 0);
  const Attributes attributes = pool_attributes(op, window, true);
  return calls.div(builder.call(op, {all}, &attributes), builder.call(op, {ones}, &attributes));
}

/// What the ops lack: places of the largest, averages of dilated windows, and padding that only some windows see.
bool needs_patches(const NodeCall& call, const Window& window, bool is_max) {
  if (is_max && call.results() > 1) return true;
  if (!is_max && window.dilation != Sizes(window.kernel.size(), 1)) return true;
  return needs_padding(window) && (window.ceil || !is_floating(call.dtype(0)));
}

template <bool is_max>
Slots pool(const NodeCall& call) {
  Builder& builder = call.builder;
  Window window = window_of_pool(call);
  const bool counts_padding = call.integer("count_include_pad", 0) != 0;
  if (needs_patches(call, window, is_max)) {
    return is_max ? max_of_patches(call, window) : average_of_patches(call, window, counts_padding);
  }
  const bool is_padded_here = needs_padding(window);
  int x = call[0];
  const bool is_line = window.kernel.size() == 1;
  if (is_line) {
    x = as_plane(builder, x);
    widen(window);
  }
  const bool is_flat = window.kernel.size() == 2;
  const OpId op =
      is_max ? (is_flat ? OpId::max_pool2d : OpId::max_pool3d) : (is_flat ? OpId::avg_pool2d : OpId::avg_pool3d);
  if (is_padded_here && !is_max && !counts_padding) {
    const int result = average_without_padding(builder, x, window, op);
    return {is_line ? as_line(builder, result) : result};
  }
  if (is_padded_here) x = padded(builder, x, window, is_max ? -std::numeric_limits<double>::infinity() : 0);
  const Attributes attributes = pool_attributes(op, window, counts_padding);
  const int result = builder.call(op, {x}, &attributes);
  return {is_line ? as_line(builder, result) : result};
}

/// Over all of an image.
template <OpId op>
Slots global_pool(const NodeCall& call) {
  Sizes dims;
  for (std::size_t d = 2; d < call.shape(0).size(); ++d) dims.push_back(static_cast<std::int64_t>(d));
  if (dims.empty()) return {call[0]};
  Attributes attributes(op);
  attributes.set_list("dim", dims).set("keepdim", 1);
  return {call.builder.call(op, {call[0]}, &attributes)};
}

constexpr Operator window_rows[] = {
    {"Conv", conv},
    {"MaxPool", pool<true>},
    {"AveragePool", pool<false>},
    {"GlobalMaxPool", global_pool<OpId::reduce_max>},
    {"GlobalAveragePool", global_pool<OpId::reduce_mean>},
};

}  // namespace

std::span<const Operator> window_operators() { return window_rows; }

}  // namespace xpuruntime::native
