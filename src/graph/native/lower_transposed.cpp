#include <algorithm>
#include <functional>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// ConvTranspose: a convolution of the input with zeros between its elements, with the kernel turned round. Where
// windows neither overlap nor leave gaps, a product makes the window of each pixel, and the windows are put side by
// side.

namespace xpuruntime::native {
namespace {

using Lengths = std::vector<std::int64_t>;

constexpr std::int64_t most_of_a_number = std::int64_t{1} << 30;

/// One number for each dim of an image.
struct Spread {
  Lengths kernel, stride, dilation, output_padding;
  Lengths before, after;  // zeros around the spread input; less than nothing cuts off

  std::int64_t reach(std::size_t d) const { return dilation[d] * (kernel[d] - 1); }
};

Lengths lengths(const NodeCall& call, std::string_view name, std::size_t count, std::int64_t otherwise) {
  const Lengths found = call.list(name).value_or(Lengths(count, otherwise));
  const auto fits_one = [=](std::int64_t n) { return n >= otherwise && n <= most_of_a_number; };
  const bool fits = std::all_of(found.begin(), found.end(), fits_one);
  if (found.size() != count || !fits) call.refuse(std::string(name) + " that do not fit the weights' dims");
  return found;
}

/// What is cut off the full result at both ends; less than nothing is filled up with zeros.
struct Cut {
  std::int64_t before = 0, after = 0;
};

/// The share of each end in a total, as ONNX says.
Cut shared(std::int64_t total, bool is_upper) {
  if (total < 0) return {.before = 0, .after = total};
  const std::int64_t less = total / 2, more = total - less;
  return is_upper ? Cut{less, more} : Cut{more, less};
}

Cut cut_of(const NodeCall& call, const Spread& spread, std::size_t d, const Lengths& pads) {
  const std::size_t count = spread.kernel.size();
  const std::string mode = call.text("auto_pad", "NOTSET");
  const std::int64_t extent = call.shape(0)[d + 2];
  const std::int64_t full = spread.stride[d] * (extent - 1) + spread.output_padding[d] + spread.reach(d) + 1;
  if (const auto shape = call.list("output_shape")) {
    if (shape->size() < count) call.refuse("an output_shape of other dims than the image");
    const std::int64_t asked = (*shape)[shape->size() - count + d];
    if (asked < 1 || asked > most_of_a_number) call.refuse("an output_shape of " + std::to_string(asked));
    return shared(full - asked, mode == "SAME_UPPER");
  }
  if (mode == "NOTSET") return {.before = pads[d], .after = pads[count + d]};
  if (mode == "VALID") return {};
  if (mode != "SAME_UPPER" && mode != "SAME_LOWER") call.refuse("auto_pad " + mode);
  return shared(full - extent * spread.stride[d], mode == "SAME_UPPER");
}

Spread spread_of(const NodeCall& call) {
  const Dims& weight = call.shape(1);
  const std::size_t count = weight.size() - 2;
  Spread spread{.kernel = Lengths(weight.begin() + 2, weight.end()),
                .stride = lengths(call, "strides", count, 1),
                .dilation = lengths(call, "dilations", count, 1),
                .output_padding = lengths(call, "output_padding", count, 0),
                .before = {},
                .after = {}};
  if (call.list("kernel_shape").value_or(spread.kernel) != spread.kernel)
    call.refuse("a kernel_shape other than the weights'");
  const Lengths pads = lengths(call, "pads", 2 * count, 0);
  for (std::size_t d = 0; d < count; ++d) {
    const std::int64_t extent = call.shape(0)[d + 2];
    if (spread.kernel[d] < 1 || extent < 1 || extent > most_of_a_number) call.refuse("an image or kernel of no size");
    const Cut cut = cut_of(call, spread, d, pads);
    spread.before.push_back(spread.reach(d) - cut.before);
    spread.after.push_back(spread.reach(d) - cut.after + spread.output_padding[d]);
  }
  return spread;
}

/// Zeros between the elements of one dim.
int with_zeros_between(Builder& builder, int slot, std::size_t dim, std::int64_t stride) {
  const Dims shape = builder.shape(slot);
  if (stride == 1 || shape[dim] == 1) return slot;
  Dims parts = {1, 1, 1}, spread = shape;
  for (std::size_t d = 0; d < shape.size(); ++d) parts[d <= dim ? 0 : 2] *= shape[d];
  spread[dim] *= stride;
  const Calls calls{builder};
  const int padded = calls.padded(builder.reshaped(slot, parts), 1, 0, stride - 1, 0);
  return calls.slice(builder.reshaped(padded, spread), static_cast<std::int64_t>(dim), 0, spread[dim] - stride + 1);
}

/// From [in, out / groups, kernel] to [out, in / groups, kernel turned round].
int turned_weight(const NodeCall& call, int slot, std::int64_t groups) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = builder.shape(slot);
  std::int64_t area = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) area *= shape[d];
  const std::int64_t swapped[] = {0, 2, 1, 3};
  int turned = calls.permuted(builder.reshaped(slot, {groups, shape[0] / groups, shape[1], area}), swapped);
  turned = calls.flipped(turned, 3);  // over all dims of the kernel as one
  Dims result = shape;
  result[0] = shape[1] * groups;
  result[1] = shape[0] / groups;
  return builder.reshaped(turned, result);
}

/// The input with its zeros, as far as the op cannot add them itself.
int spread_input(const NodeCall& call, Spread& spread) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  int x = call[0];
  for (std::size_t d = 0; d < spread.kernel.size(); ++d) {
    const std::size_t dim = d + 2;
    x = with_zeros_between(builder, x, dim, spread.stride[d]);
    std::int64_t &before = spread.before[d], &after = spread.after[d];
    if (before == after && before >= 0) continue;
    const std::int64_t extent = builder.shape(x)[dim];
    if (std::max<std::int64_t>(-before, 0) + std::max<std::int64_t>(-after, 0) >= extent) {
      call.refuse("pads that leave nothing of the input");
    }
    if (before < 0 || after < 0) {
      x = calls.slice(x, static_cast<std::int64_t>(dim), std::max<std::int64_t>(-before, 0),
                      extent + std::min<std::int64_t>(after, 0));
    }
    x = calls.padded(x, dim, std::max<std::int64_t>(before, 0), std::max<std::int64_t>(after, 0), 0);
    before = after = 0;
  }
  return x;
}

/// A line as a plane of height 1.
int with_height(Builder& builder, int slot) {
  const Dims line = builder.shape(slot);
  return builder.reshaped(slot, {line[0], line[1], 1, line[2]});
}

/// Each pixel's window stands alone and whole: strides as long as the kernel.
bool is_tiling(const Spread& spread) {
  for (std::size_t d = 0; d < spread.kernel.size(); ++d) {
    const std::int64_t reach = spread.reach(d);
    if (spread.stride[d] != spread.kernel[d] || reach != spread.kernel[d] - 1) return false;
    if (spread.before[d] != reach || spread.after[d] != reach) return false;
  }
  return true;
}

/// One number for each output channel, for all elements of its windows.
int repeated(Builder& builder, int bias, std::int64_t area) {
  const std::int64_t channels = builder.shape(bias)[0];
  const int column = builder.reshaped(bias, {channels, 1});
  return builder.reshaped(builder.contiguous(builder.broadcast(column, {channels, area})), {channels * area});
}

/// From [batch, channels, windows..., pixels...] to [batch, channels, pixels and windows in turns].
int side_by_side(Builder& builder, int windows, std::int64_t channels, const Dims& pixels, const Lengths& kernel) {
  const std::size_t count = kernel.size();
  Lengths parts = {pixels[0], channels}, order = {0, 1}, whole = parts;
  parts.insert(parts.end(), kernel.begin(), kernel.end());
  parts.insert(parts.end(), pixels.begin() + 2, pixels.end());
  for (std::size_t d = 0; d < count; ++d) {
    for (const std::size_t dim : {2 + count + d, 2 + d}) order.push_back(static_cast<std::int64_t>(dim));
    whole.push_back(pixels[d + 2] * kernel[d]);
  }
  const int turned = Calls{builder}.permuted(builder.reshaped(windows, Dims(std::span(parts))), order);
  return builder.reshaped(turned, Dims(std::span(whole)));
}

/// The kernel's elements become output channels of a convolution with one tap.
Slots tiled(const NodeCall& call, const Lengths& kernel) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims pixels = call.shape(0), weight = call.shape(1);
  const std::int64_t area = std::accumulate(kernel.begin(), kernel.end(), std::int64_t{1}, std::multiplies<>());
  const std::int64_t outputs = weight[1] * area, turned[] = {1, 0};
  const int matrix = calls.permuted(builder.reshaped(call[1], {weight[0], outputs}), turned);
  Slots inputs = {call[0], builder.reshaped(matrix, {outputs, weight[0], 1, 1})};
  // One tap takes an image of any dims as a line.
  std::int64_t length = 1;
  for (std::size_t d = 2; d < pixels.size(); ++d) length *= pixels[d];
  inputs[0] = builder.reshaped(call[0], {pixels[0], pixels[1], 1, length});
  if (call.has(2)) inputs.push_back(repeated(builder, call[2], area));
  return {side_by_side(builder, builder.call(OpId::conv2d, inputs), weight[1], pixels, kernel)};
}

Slots conv_transpose(const NodeCall& call) {
  Builder& builder = call.builder;
  const Dims x_shape = call.shape(0), w_shape = call.shape(1);
  const std::int64_t groups = call.integer("group", 1);
  if (w_shape.size() < 3 || w_shape.size() > 5 || x_shape.size() != w_shape.size()) {
    call.refuse("an input " + to_string(x_shape) + " with weights " + to_string(w_shape));
  }
  if (groups < 1 || x_shape[1] != w_shape[0] || x_shape[1] % groups != 0) call.refuse("groups or channels that differ");
  Spread spread = spread_of(call);
  if (groups == 1 && is_tiling(spread)) return tiled(call, spread.kernel);
  int x = spread_input(call, spread), weight = turned_weight(call, call[1], groups);
  const bool is_line = spread.kernel.size() == 1;
  if (is_line) {
    x = with_height(builder, x);
    weight = with_height(builder, weight);
    spread.dilation.insert(spread.dilation.begin(), 1);
    spread.before.insert(spread.before.begin(), 0);
  }
  Attributes attributes(w_shape.size() == 5 ? OpId::conv3d : OpId::conv2d);
  attributes.set_list("stride", Lengths(spread.dilation.size(), 1));
  attributes.set_list("padding", spread.before).set_list("dilation", spread.dilation).set("groups", groups);
  Slots inputs = {x, weight};
  if (call.has(2)) inputs.push_back(call[2]);
  const int result = builder.call(w_shape.size() == 5 ? OpId::conv3d : OpId::conv2d, inputs, &attributes);
  if (!is_line) return {result};
  const Dims plane = builder.shape(result);
  return {builder.reshaped(result, {plane[0], plane[1], plane[3]})};
}

constexpr Operator transposed_rows[] = {{"ConvTranspose", conv_transpose}};

}  // namespace

std::span<const Operator> transposed_operators() { return transposed_rows; }

}  // namespace xpuruntime::native
