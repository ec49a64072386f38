#include <algorithm>
#include <cmath>
#include <functional>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/lowering.h"

// Resize and its forerunner Upsample, an axis at a time: where each element comes from is known before a run.

namespace xpuruntime::native {
namespace {

using Numbers = std::vector<double>;

/// One axis: how long it is and becomes, and where its elements come from.
struct Resizing {
  std::size_t axis = 0;
  std::int64_t from = 0, to = 0;
  double scale = 1;
  bool is_by_scale = false;   // else by size
  double begin = 0, end = 1;  // of what is cut out, as shares of the axis

  bool is_changed() const { return from != to || scale != 1 || begin != 0 || end != 1; }
};

struct ResizeOptions {
  std::string mode, coordinates, rounding;
  bool is_first_version = false;  // before opset 11
  bool antialias = false, exclude_outside = false;
  double cubic = -0.75, extrapolation = 0;

  bool crops() const { return coordinates == "tf_crop_and_resize"; }
};

/// Floating numbers of a constant input; nothing where it is absent or empty.
Numbers known_numbers(const NodeCall& call, std::size_t input) {
  if (!call.has(input) || element_count(call.builder.spec(call[input])) == 0) return {};
  call.need_constant(input);
  const Tensor& tensor = call.builder.constant_of(call.builder.contiguous(call[input]));
  Numbers numbers;
  const auto load = loader_of(tensor.dtype());
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) {
    numbers.push_back(static_cast<double>(load(tensor.as<const void>(), i)));
  }
  return numbers;
}

std::vector<std::size_t> resized_axes(const NodeCall& call, std::size_t count) {
  const std::size_t rank = call.shape(0).size();
  std::vector<std::size_t> axes;
  if (const auto given = call.list("axes")) {
    for (const std::int64_t axis : *given) axes.push_back(call.axis(axis, rank));
  } else {
    for (std::size_t axis = 0; axis < rank; ++axis) axes.push_back(axis);
  }
  if (axes.size() != count) call.refuse("another number of scales or sizes than axes");
  return axes;
}

constexpr double longest_axis = 1 << 24;  // its indices are in memory

std::vector<Resizing> by_scales(const NodeCall& call, const Numbers& scales) {
  const std::vector<std::size_t> axes = resized_axes(call, scales.size());
  std::vector<Resizing> all;
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const std::int64_t from = call.shape(0)[axes[i]];
    const double to = std::floor(static_cast<double>(from) * scales[i]);
    if (!(scales[i] > 0) || to > longest_axis) call.refuse("the scale " + std::to_string(scales[i]));
    all.push_back({axes[i], from, static_cast<std::int64_t>(to), scales[i], true});
  }
  return all;
}

/// One scale for all axes, so that no result is larger, or none smaller, than its size.
void keep_aspect_ratio(const NodeCall& call, std::vector<Resizing>& all) {
  const std::string policy = call.text("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch" || all.empty()) return;
  if (policy != "not_larger" && policy != "not_smaller") call.refuse("keep_aspect_ratio_policy " + policy);
  double scale = all[0].scale;
  for (const Resizing& one : all) {
    scale = policy == "not_larger" ? std::min(scale, one.scale) : std::max(scale, one.scale);
  }
  for (Resizing& one : all) {
    const double to = std::floor(scale * static_cast<double>(one.from) + 0.5);
    if (to > longest_axis) call.refuse("an axis of over 16 million elements");
    one.to = static_cast<std::int64_t>(to);
    one.scale = scale;
    one.is_by_scale = true;
  }
}

std::vector<Resizing> by_sizes(const NodeCall& call, const std::vector<std::int64_t>& sizes) {
  const std::vector<std::size_t> axes = resized_axes(call, sizes.size());
  std::vector<Resizing> all;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t from = call.shape(0)[axes[i]];
    if (from < 1 || sizes[i] < 0 || static_cast<double>(sizes[i]) > longest_axis) {
      call.refuse("from " + std::to_string(from) + " to " + std::to_string(sizes[i]) + " elements");
    }
    all.push_back({axes[i], from, sizes[i], static_cast<double>(sizes[i]) / static_cast<double>(from)});
  }
  keep_aspect_ratio(call, all);
  return all;
}

std::vector<Resizing> resizings_of(const NodeCall& call) {
  const bool is_upsample = call.node().op == "Upsample";
  if (is_upsample && call.opset < 9) {
    const auto* given = call.attribute("scales");
    const auto* list = given == nullptr ? nullptr : std::get_if<std::vector<float>>(given);
    if (list == nullptr) call.refuse("no scales");
    return by_scales(call, Numbers(list->begin(), list->end()));
  }
  const Numbers scales = known_numbers(call, call.opset < 11 ? 1 : 2);
  if (!scales.empty()) return by_scales(call, scales);
  if (call.opset < 11 || !call.has(3)) call.refuse("neither scales nor sizes");
  return by_sizes(call, call.values(3));
}

ResizeOptions options_of(const NodeCall& call) {
  ResizeOptions options{.mode = call.text("mode", "nearest"),
                        .coordinates = call.text("coordinate_transformation_mode", "half_pixel"),
                        .rounding = call.text("nearest_mode", "round_prefer_floor"),
                        .is_first_version = call.opset < 11};
  if (options.is_first_version) options.coordinates = "asymmetric", options.rounding = "floor";
  options.antialias = call.integer("antialias", 0) != 0;
  options.exclude_outside = call.integer("exclude_outside", 0) != 0;
  options.cubic = call.real("cubic_coeff_a", -0.75);
  options.extrapolation = call.real("extrapolation_value", 0);
  if (options.mode != "nearest" && options.mode != "linear" && options.mode != "cubic")
    call.lacks("mode " + options.mode);
  constexpr std::string_view known[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel",
                                        "asymmetric", "align_corners",        "tf_crop_and_resize"};
  if (std::find(std::begin(known), std::end(known), options.coordinates) == std::end(known)) {
    call.lacks("coordinate_transformation_mode " + options.coordinates);
  }
  return options;
}

/// Numbers that are worth a product with a scale are rounded as 32-bit floats, as other runtimes round them.
double divided(const Resizing& one, double at) {
  if (one.is_by_scale) return static_cast<double>(static_cast<float>(at) / static_cast<float>(one.scale));
  return at * static_cast<double>(one.from) / static_cast<double>(one.to);
}

/// Where element `at` of the result comes from.
double origin(const Resizing& one, const std::string& coordinates, std::int64_t at) {
  const auto place = static_cast<double>(at), from = static_cast<double>(one.from), to = static_cast<double>(one.to);
  const double exact = one.is_by_scale ? one.scale * from : to;
  if (coordinates == "asymmetric") return divided(one, place);
  if (coordinates == "align_corners") {
    return exact == 1 ? 0 : place * (from - 1) / (exact - 1);
  }
  if (coordinates == "tf_crop_and_resize") {
    const double part = one.end - one.begin;
    return (exact == 1 ? part / 2 : one.begin + place * part / (exact - 1)) * (from - 1) +
           (exact == 1 ? one.begin * (from - 1) : 0);
  }
  if (coordinates == "pytorch_half_pixel" && one.to == 1) return 0;
  const double half = divided(one, place + 0.5) - 0.5;
  return coordinates == "half_pixel_symmetric" ? from / 2 * (1 - to / exact) + half : half;
}

Numbers origins(const Resizing& one, const std::string& coordinates) {
  Numbers found;
  for (std::int64_t at = 0; at < one.to; ++at) found.push_back(origin(one, coordinates, at));
  return found;
}

std::int64_t within(const Resizing& one, double place) {
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(place), 0, one.from - 1);
}

double rounded(const NodeCall& call, double place, const std::string& rounding) {
  if (rounding == "round_prefer_floor") return std::ceil(place - 0.5);
  if (rounding == "round_prefer_ceil") return std::floor(place + 0.5);
  if (rounding == "floor") return std::floor(place);
  if (rounding == "ceil") return std::ceil(place);
  call.lacks("nearest_mode " + rounding);
}

std::vector<std::int64_t> nearest_indices(const NodeCall& call, const Resizing& one, const ResizeOptions& options) {
  std::vector<std::int64_t> indices;
  for (const double place : origins(one, options.coordinates)) {
    const double index = rounded(call, place, options.rounding);
    const bool is_unclear = options.is_first_version && one.scale < 1 && index != place;
    if (is_unclear) call.lacks("fewer elements in opset " + std::to_string(call.opset) + ", which does not say which");
    indices.push_back(within(one, index));
  }
  return indices;
}

/// How often each element comes in turn; 0 where it is not a whole number of times.
std::int64_t repeats_of(const Resizing& one, const std::vector<std::int64_t>& indices) {
  if (one.from < 1 || one.to < one.from || one.to % one.from != 0) return 0;
  const std::int64_t times = one.to / one.from;
  for (std::int64_t i = 0; i < one.to; ++i) {
    if (indices[static_cast<std::size_t>(i)] != i / times) return 0;
  }
  return times;
}

/// Each element of each dim so many times in turn: one copy, of a view.
int repeated(Builder& builder, int slot, const Dims& times) {
  Dims result = builder.shape(slot);
  std::vector<std::int64_t> split = {1}, wide = {1};
  for (std::size_t d = 0; d < times.size(); ++d) {
    split.back() *= result[d];
    wide.back() *= result[d];
    result[d] *= times[d];
    if (times[d] == 1) continue;
    split.insert(split.end(), {1, 1});
    wide.insert(wide.end(), {times[d], 1});
  }
  const int parts = builder.reshaped(slot, Dims(std::span(split)));
  return builder.reshaped(builder.broadcast(parts, Dims(std::span(wide))), result);
}

int nearest(const NodeCall& call, const std::vector<Resizing>& all, const ResizeOptions& options) {
  constexpr std::size_t most = 3;  // dims that a view of 8 can repeat
  int result = call[0];
  Dims times = Dims::filled(call.shape(0).size(), 1);
  std::size_t repeated_dims = 0;
  for (const Resizing& one : all) {
    if (!one.is_changed()) continue;
    const std::vector<std::int64_t> indices = nearest_indices(call, one, options);
    const std::int64_t whole = repeated_dims < most ? repeats_of(one, indices) : 0;
    if (whole > 0) {
      times[one.axis] = whole;
      repeated_dims += whole > 1 ? 1 : 0;
    } else {
      result = Calls{call.builder}.gathered(result, one.axis, call.builder.integers(indices));
    }
  }
  return repeated_dims == 0 ? result : repeated(call.builder, result, times);
}

/// Weights along one axis, in a dtype.
int weights_along(Builder& builder, const Numbers& weights, DataType dtype, std::size_t axis, std::size_t rank) {
  const auto count = static_cast<std::int64_t>(weights.size());
  const Tensor host = Tensor::empty(dtype, {count});
  for (std::int64_t i = 0; i < count; ++i) storer_of(dtype)(host.data(), i, weights[static_cast<std::size_t>(i)]);
  Dims shape = Dims::filled(rank - axis, 1);
  shape[0] = count;
  return builder.reshaped(builder.constant(host), shape);
}

/// The share of a neighbour by its distance: a triangle, or ONNX's cubic.
double share_of(const ResizeOptions& options, double distance) {
  const double x = std::abs(distance), a = options.cubic;
  if (options.mode == "linear") return std::max(1 - x, 0.0);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/// Where the elements of the result come from: some neighbours of each, with shares that add up to 1.
struct Neighbours {
  std::int64_t count;
  std::vector<std::int64_t> index = {};
  Numbers share = {};
};

Neighbours neighbours_of(const NodeCall& call, const Resizing& one, const ResizeOptions& options) {
  // With antialias the neighbours reach as far as the elements of the result are apart.
  const double narrow = options.antialias ? std::min(one.scale, 1.0) : 1;
  const double reach = (options.mode == "linear" ? 1 : 2) / narrow;
  if (!(reach < longest_axis)) call.refuse("a scale of " + std::to_string(one.scale));
  const auto before = static_cast<std::int64_t>(std::ceil(reach)) - 1;
  Neighbours found{2 * before + 2};
  if (static_cast<double>(found.count) * static_cast<double>(one.to) > longest_axis) {
    call.refuse("more than 16 million neighbours");
  }
  for (const double place : origins(one, options.coordinates)) {
    const double below = std::floor(place);
    double sum = 0;
    for (std::int64_t i = 0; i < found.count; ++i) {
      const double at = below + static_cast<double>(i - before);
      const bool is_outside = at < 0 || at >= static_cast<double>(one.from);
      const double share = options.exclude_outside && is_outside ? 0 : share_of(options, (at - place) * narrow);
      found.index.push_back(within(one, at));
      found.share.push_back(share);
      sum += share;
    }
    if (!options.antialias && !options.exclude_outside) continue;
    for (auto i = found.share.end() - found.count; i != found.share.end(); ++i) *i /= sum == 0 ? 1 : sum;
  }
  return found;
}

/// Beyond the ends there is the last element.
int interpolated_along(const NodeCall& call, int slot, const Resizing& one, const ResizeOptions& options) {
  Builder& builder = call.builder;
  const Calls calls{builder};
  const std::size_t rank = builder.shape(slot).size();
  const Neighbours all = neighbours_of(call, one, options);
  int result = -1;
  for (std::int64_t i = 0; i < all.count; ++i) {
    std::vector<std::int64_t> index;
    Numbers share;
    for (auto at = static_cast<std::size_t>(i); at < all.index.size(); at += static_cast<std::size_t>(all.count)) {
      index.push_back(all.index[at]);
      share.push_back(all.share[at]);
    }
    const int neighbours = calls.gathered(slot, one.axis, builder.integers(index));
    const int part = calls.mul(neighbours, weights_along(builder, share, builder.spec(slot).dtype, one.axis, rank));
    result = result < 0 ? part : calls.add(result, part);
  }
  return result;
}

/// What comes from outside the image is one value.
int extrapolated(const NodeCall& call, int slot, const Resizing& one, const ResizeOptions& options) {
  Numbers inside, value;
  for (const double place : origins(one, options.coordinates)) {
    const bool is_inside = place >= 0 && place <= static_cast<double>(one.from - 1);
    inside.push_back(is_inside ? 1 : 0);
    value.push_back(is_inside ? 0 : options.extrapolation);
  }
  if (std::find(inside.begin(), inside.end(), 0.0) == inside.end()) return slot;
  const Calls calls{call.builder};
  const auto along = [&](const Numbers& numbers) {
    return weights_along(call.builder, numbers, call.builder.spec(slot).dtype, one.axis,
                         call.builder.shape(slot).size());
  };
  return calls.add(calls.mul(slot, along(inside)), along(value));
}

/// What is cut out, of each axis first where it begins, then where it ends.
void read_crop(const NodeCall& call, std::vector<Resizing>& all) {
  const Numbers crop = known_numbers(call, 1);
  const std::size_t count = all.size();
  if (crop.size() != 2 * count) call.refuse("a roi of another length than twice the axes");
  for (std::size_t i = 0; i < count; ++i) {
    if (!(std::abs(crop[i]) < longest_axis && std::abs(crop[count + i]) < longest_axis))
      call.refuse("a roi without bounds");
    all[i].begin = crop[i];
    all[i].end = crop[count + i];
  }
}

Slots resize(const NodeCall& call) {
  const ResizeOptions options = options_of(call);
  std::vector<Resizing> all = resizings_of(call);
  if (options.crops()) read_crop(call, all);
  for (const Resizing& one : all) {
    if (one.from < 1 || one.to < 1) call.refuse("an axis without elements");
  }
  if (options.mode == "nearest" && !options.crops()) return {nearest(call, all, options)};
  if (!is_floating(call.dtype(0))) call.lacks("integers between integers");
  int result = options.mode == "nearest" ? nearest(call, all, options) : call[0];
  for (const Resizing& one : all) {
    if (options.mode != "nearest" && one.is_changed()) result = interpolated_along(call, result, one, options);
    if (options.crops()) result = extrapolated(call, result, one, options);
  }
  return {result};
}

constexpr Operator resize_rows[] = {{"Resize", resize}, {"Upsample", resize}};

}  // namespace

std::span<const Operator> resize_operators() { return resize_rows; }

}  // namespace xpuruntime::native
