#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/window.h"

// Pools that no op has, and what goes the other way: the elements of each window are gathered side by side.

namespace xpuruntime::native {
namespace {

std::int64_t product(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), std::int64_t{1}, std::multiplies<>());
}

/// The windows of an image: how many there are of each dim, and where their elements come from.
struct Patches {
  Sizes image, windows;
  Sizes sources;             // of each window, each element's place in the image; the image's size: none, outside
  std::int64_t window_size;  // elements
};

std::int64_t windows_along(const NodeCall& call, const Window& window, std::size_t d, std::int64_t extent) {
  const std::int64_t reach = window.dilation[d] * (window.kernel[d] - 1) + 1, stride = window.stride[d];
  const std::int64_t room = extent + window.before[d] + window.after[d] - reach;
  if (room < 0) call.refuse("a window that is larger than the image");
  std::int64_t count = (room + (window.ceil ? stride - 1 : 0)) / stride + 1;
  if (window.ceil && (count - 1) * stride >= extent + window.before[d]) --count;  // the last begins inside
  return count;
}

/// Counts up like the digits of a number.
bool next(Sizes& digits, const Sizes& ends) {
  for (std::size_t d = digits.size(); d-- > 0;) {
    if (++digits[d] < ends[d]) return true;
    digits[d] = 0;
  }
  return false;
}

/// Of one element of one window; the image's size where it lies outside. `is_past`: not even in the padding.
std::int64_t source_of(const Patches& patches, const Window& window, const Sizes& at, const Sizes& tap, bool& is_past) {
  std::int64_t place = 0;
  bool inside = true;
  for (std::size_t d = 0; d < at.size(); ++d) {
    const std::int64_t coordinate = at[d] * window.stride[d] + tap[d] * window.dilation[d] - window.before[d];
    inside = inside && coordinate >= 0 && coordinate < patches.image[d];
    is_past = is_past || coordinate >= patches.image[d] + window.after[d];
    place = place * patches.image[d] + coordinate;
  }
  return inside ? place : product(patches.image);
}

Patches patches_of(const NodeCall& call, const Window& window, const Sizes& image, Sizes* in_padding = nullptr) {
  Patches patches{image, {}, {}, product(window.kernel)};
  for (std::size_t d = 0; d < image.size(); ++d) patches.windows.push_back(windows_along(call, window, d, image[d]));
  constexpr double most = 1 << 24;  // their places are in memory
  double total = 1, size = 1;
  for (std::size_t d = 0; d < image.size(); ++d) {
    total *= static_cast<double>(patches.windows[d]) * static_cast<double>(window.kernel[d]);
    size *= static_cast<double>(image[d]);
  }
  if (!(total >= 1 && total <= most && size >= 1 && size <= 0x1p40)) {
    call.refuse("more than 16 million elements of windows, or an image of no size");
  }
  Sizes at(image.size(), 0);
  do {
    Sizes tap(image.size(), 0);
    std::int64_t counted = 0;
    do {
      bool is_past = false;
      patches.sources.push_back(source_of(patches, window, at, tap, is_past));
      counted += is_past ? 0 : 1;
    } while (next(tap, window.kernel));
    if (in_padding != nullptr) in_padding->push_back(counted);
  } while (next(at, patches.windows));
  return patches;
}

Sizes image_of(const NodeCall& call) { return Sizes(call.shape(0).begin() + 2, call.shape(0).end()); }

/// [images, windows, elements], of an image with one more element, which stands for all that is outside.
int gathered(const NodeCall& call, const Patches& patches, int image, double outside) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = call.shape(0);
  const int flat = builder.reshaped(image, {shape[0] * shape[1], product(patches.image)});
  const int index =
      builder.reshaped(builder.integers(patches.sources), {product(patches.windows), patches.window_size});
  return calls.gathered(calls.padded(flat, 1, 0, 1, outside), 1, index);
}

Dims pooled_shape(const NodeCall& call, const Patches& patches) {
  Dims shape = call.shape(0);
  for (std::size_t d = 0; d < patches.windows.size(); ++d) shape[d + 2] = patches.windows[d];
  return shape;
}

double lowest(DataType dtype) {
  if (is_floating(dtype)) return -std::numeric_limits<double>::infinity();
  return dtype == DataType::uint8 ? 0 : -std::ldexp(1.0, static_cast<int>(size_of(dtype)) * 8 - 1);
}

/// The places in the whole tensor, of the elements that `arg_max` found in their windows.
int places_in_tensor(const NodeCall& call, const Patches& patches, int found) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims shape = call.shape(0);
  const bool columns_first = call.integer("storage_order", 0) != 0;
  const std::int64_t images = shape[0] * shape[1], size = product(patches.image), windows = product(patches.windows);
  Sizes table, starts, offsets;
  for (const std::int64_t source : patches.sources) {
    std::int64_t place = source, rest = source, stride = size;
    if (columns_first && source < size) {
      place = 0;
      for (std::size_t d = patches.image.size(); d-- > 0;) {
        stride /= patches.image[d];
        place += rest % patches.image[d] * stride;
        rest /= patches.image[d];
      }
    }
    table.push_back(place);
  }
  for (std::int64_t i = 0; i < windows; ++i) starts.push_back(i * patches.window_size);
  for (std::int64_t i = 0; i < images; ++i) offsets.push_back(i * size);
  const int in_table = calls.add(found, builder.integers(starts));
  return calls.add(calls.gathered(builder.integers(table), 0, in_table),
                   builder.reshaped(builder.integers(offsets), {images, 1}));
}

/// Sums of |x| ^ p, then the root.
Slots lp_pool(const NodeCall& call) {
  const Window window = window_of_pool(call);
  const std::int64_t p = call.integer("p", 2);
  if (p < 1 || p > 64) call.refuse("a norm of order " + std::to_string(p));
  const Calls calls{call.builder};
  const Patches patches = patches_of(call, window, image_of(call));
  const int x = calls.widened(gathered(call, patches, call[0], 0));
  const int size = p % 2 == 0 ? x : calls.absolute(x);
  int power = size;
  for (std::int64_t i = 1; i < p; ++i) power = calls.mul(power, size);
  const std::int64_t last[] = {2};
  int sum = calls.reduce(OpId::reduce_sum, power, last, false);
  if (p == 2) sum = calls.one(OpId::sqrt, sum);
  if (p > 2)
    sum = calls.one(OpId::exp, calls.mul(calls.one(OpId::log, sum), calls.number(1.0 / static_cast<double>(p), sum)));
  return {call.builder.reshaped(calls.cast(sum, call.dtype(0)), pooled_shape(call, patches))};
}

/// A flat tensor of zeros with what `values` has where `places` say.
int scattered(const NodeCall& call, const Dims& shape, std::int64_t dim, int places, int values, std::string_view how) {
  Builder& builder = call.builder;
  const int zeros = builder.contiguous(builder.broadcast(Calls{builder}.number(0, values), shape));
  Attributes attributes(OpId::scatter_elements);
  attributes.set("dim", dim).set_choice("reduction", how);
  return builder.call(OpId::scatter_elements, {zeros, places, values}, &attributes);
}

/// What max pooling has left, back at its places, among zeros.
Slots max_unpool(const NodeCall& call) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const Dims from = call.shape(0);
  const auto kernel = call.list("kernel_shape").value_or(Sizes{});
  if (kernel.empty() || kernel.size() + 2 != from.size() || call.shape(1) != from)
    call.refuse("a kernel or indices that do not fit");
  const Sizes stride = call.list("strides").value_or(Sizes(kernel.size(), 1));
  const Sizes pads = call.list("pads").value_or(Sizes(2 * kernel.size(), 0));
  if (stride.size() != kernel.size() || pads.size() != 2 * kernel.size())
    call.refuse("strides or pads of another length");
  Dims shape = from;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    std::int64_t& extent = shape[d + 2];
    if (__builtin_mul_overflow(extent - 1, stride[d], &extent) || __builtin_add_overflow(extent, kernel[d], &extent) ||
        __builtin_sub_overflow(extent, pads[d], &extent) ||
        __builtin_sub_overflow(extent, pads[kernel.size() + d], &extent) || extent < 0) {
      call.refuse("strides, pads and a kernel that leave no image");
    }
  }
  const std::int64_t count = element_count(builder.spec(call[0]));
  const int flat = scattered(call, {checked_count(shape, 1)}, 0, builder.reshaped(call[1], {count}),
                             builder.reshaped(call[0], {count}), "none");
  int result = builder.reshaped(flat, shape);
  if (!call.has(2)) return {result};
  const Sizes wanted = call.values(2);
  if (wanted.size() != shape.size()) call.refuse("an output_shape with other dims than the input");
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    if (wanted[d] < shape[d] || wanted[d] > 1 << 30) call.refuse("an output_shape that is smaller than the result");
    result = calls.padded(result, d, 0, wanted[d] - shape[d], 0);
  }
  return {result};
}

/// The blocks of an image added up where they lie over each other.
Slots col2im(const NodeCall& call) {
  Builder& builder = call.builder;
  const Dims from = call.shape(0);
  const Sizes image = call.values(1), block = call.values(2);
  const std::size_t dims = image.size();
  const Sizes pads = call.list("pads").value_or(Sizes(2 * dims, 0));
  Window window{.kernel = block,
                .stride = call.list("strides").value_or(Sizes(dims, 1)),
                .dilation = call.list("dilations").value_or(Sizes(dims, 1)),
                .before = {},
                .after = {}};
  if (from.size() != 3 || dims < 1 || dims + 2 > max_rank || block.size() != dims || window.stride.size() != dims ||
      window.dilation.size() != dims || pads.size() != 2 * dims) {
    call.refuse("an input, image_shape, block_shape, strides, dilations or pads that do not fit each other");
  }
  for (std::size_t d = 0; d < dims; ++d) {
    for (const std::int64_t size : {image[d], block[d], window.stride[d], window.dilation[d]}) {
      if (size < 1 || size > 1 << 24) call.refuse("a size of " + std::to_string(size));
    }
    for (const std::int64_t pad : {pads[d], pads[dims + d]}) {
      if (pad < 0 || pad > 1 << 24) call.refuse("a pad of " + std::to_string(pad));
    }
    window.before.push_back(pads[d]);
    window.after.push_back(pads[dims + d]);
  }
  const Patches patches = patches_of(call, window, image);
  const std::int64_t size = product(image), windows = product(patches.windows), area = patches.window_size;
  if (from[1] % area != 0 || from[2] != windows)
    call.refuse("blocks " + to_string(from) + " for " + std::to_string(area) + " elements and " +
                std::to_string(windows) + " places");
  const std::int64_t channels = from[1] / area, images = from[0] * channels;
  const int places = builder.reshaped(builder.integers(patches.sources), {windows, area});
  const std::int64_t swapped[] = {1, 0};
  const int of_blocks = builder.reshaped(Calls{builder}.permuted(places, swapped), {1, area * windows});
  const int index = builder.contiguous(builder.broadcast(of_blocks, {images, area * windows}));
  const int sums =
      scattered(call, {images, size + 1}, 1, index, builder.reshaped(call[0], {images, area * windows}), "add");
  Dims shape = Dims::filled(dims + 2, from[0]);
  shape[1] = channels;
  for (std::size_t d = 0; d < dims; ++d) shape[d + 2] = image[d];
  return {builder.reshaped(Calls{builder}.slice(sums, 1, 0, size), shape)};
}

constexpr Operator patch_rows[] = {{"LpPool", lp_pool}, {"MaxUnpool", max_unpool}, {"Col2Im", col2im}};

}  // namespace

Window window_of_pool(const NodeCall& call) {
  const auto kernel = call.list("kernel_shape");
  if (!kernel || kernel->empty() || kernel->size() > 3) call.lacks("windows of other than 1 to 3 dims");
  return window_of(call, *kernel);
}

Slots max_of_patches(const NodeCall& call, const Window& window) {
  const Calls calls{call.builder};
  const Patches patches = patches_of(call, window, image_of(call));
  const Dims shape = pooled_shape(call, patches);
  const int all = gathered(call, patches, call[0], lowest(call.dtype(0)));
  const std::int64_t last[] = {2};
  Slots results = {call.builder.reshaped(calls.reduce(OpId::reduce_max, all, last, false), shape)};
  if (call.results() < 2) return results;
  Attributes attributes(OpId::arg_max);
  const int found = call.builder.call(OpId::arg_max, {all}, &attributes.set("dim", 2));
  results.push_back(call.builder.reshaped(places_in_tensor(call, patches, found), shape));
  return results;
}

Slots average_of_patches(const NodeCall& call, const Window& window, bool counts_padding) {
  const Calls calls{call.builder};
  Sizes counts;
  const Patches patches = patches_of(call, window, image_of(call), &counts);
  const std::int64_t area = patches.window_size, size = product(patches.image), last[] = {2};
  const int all = calls.widened(gathered(call, patches, call[0], 0));
  const int sums = calls.reduce(OpId::reduce_sum, all, last, false);
  const DataType dtype = call.builder.spec(sums).dtype;
  const Tensor divisors = Tensor::empty(dtype, {static_cast<std::int64_t>(counts.size())});
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const auto begin = patches.sources.begin() + static_cast<std::ptrdiff_t>(i) * area;
    const auto inside = area - std::count(begin, begin + area, size);
    storer_of(dtype)(divisors.data(), static_cast<std::int64_t>(i),
                     static_cast<double>(counts_padding ? counts[i] : inside));
  }
  const int mean = calls.div(sums, call.builder.constant(divisors));
  return {call.builder.reshaped(calls.cast(mean, call.dtype(0)), pooled_shape(call, patches))};
}

std::span<const Operator> patch_operators() { return patch_rows; }

}  // namespace xpuruntime::native
