#include <cmath>

#include "core/elements.h"
#include "graph/native/calls.h"
#include "graph/native/known.h"

// Images read between their elements, where a grid or boxes say.

namespace xpuruntime::native {
namespace {

using Sizes = std::vector<std::int64_t>;

/// Arithmetic on places, which are floats.
struct PlaceCalls : Calls {
  int plus(int a, double by) const { return add(a, number(by, a)); }
  int times(int a, double by) const { return mul(a, number(by, a)); }
  int held(int a, double least, double most) const {
    return extreme(OpId::minimum, extreme(OpId::maximum, a, number(least, a)), number(most, a));
  }
  int truncated(int a) const { return cast(cast(a, DataType::int64), builder.spec(a).dtype); }
  /// 1 where it is not 0, else 0.
  int is_set(int a) const { return cast(cast(a, DataType::boolean), builder.spec(a).dtype); }
  int floor(int a) const {
    const int near = truncated(a);
    return sub(near, is_set(one(OpId::relu, sub(near, a))));
  }
  int is_odd(int whole) const { return sub(whole, times(floor(times(whole, 0.5)), 2)); }
  /// Halves go to the even neighbour.
  int rounded(int a) const {
    const int up = floor(plus(a, 0.5));
    const int is_no_tie = is_set(plus(sub(up, a), -0.5));
    return sub(up, mul(is_odd(up), plus(times(is_no_tie, -1), 1)));
  }
};

enum class Outside { zeros, border, reflection };

/// One dim of the image: its elements, and where its border lies.
struct Axis {
  std::int64_t extent;
  double low, high;
};

struct Sampling {
  Outside outside = Outside::zeros;
  bool aligned = false;
  std::int64_t taps = 2;  // of each dim: 1 nearest, 2 linear, 4 cubic
};

Sampling sampling_of(const NodeCall& call) {
  Sampling sampling;
  const std::string mode = call.text("mode", "linear"), padding = call.text("padding_mode", "zeros");
  if (mode == "nearest") sampling.taps = 1;
  if (mode == "cubic" || mode == "bicubic") sampling.taps = 4;
  if (sampling.taps == 2 && mode != "linear" && mode != "bilinear") call.lacks("mode " + mode);
  if (padding == "border") sampling.outside = Outside::border;
  if (padding == "reflection") sampling.outside = Outside::reflection;
  if (sampling.outside == Outside::zeros && padding != "zeros") call.lacks("padding_mode " + padding);
  sampling.aligned = call.integer("align_corners", 0) != 0;
  return sampling;
}

/// Thrown back by the borders until it is within them.
int reflected(const PlaceCalls& places, const Axis& axis, int x) {
  const double range = axis.high - axis.low;
  if (range <= 0) return places.times(x, 0);
  const int distance = places.absolute(places.plus(x, -axis.low));
  const int turns = places.floor(places.times(distance, 1 / range));
  const int rest = places.sub(distance, places.times(turns, range));
  const int back = places.mul(places.is_odd(turns), places.plus(places.times(rest, -2), range));
  return places.plus(places.add(rest, back), axis.low);
}

/// From -1 to 1 to elements; far outside is as good as a little.
int place_along(const PlaceCalls& places, const Sampling& sampling, const Axis& axis, int coordinate) {
  const auto extent = static_cast<double>(axis.extent);
  const int shifted = places.plus(coordinate, 1);
  int x =
      sampling.aligned ? places.times(shifted, (extent - 1) / 2) : places.plus(places.times(shifted, extent / 2), -0.5);
  x = places.held(x, -0x1p30, 0x1p30);
  if (sampling.taps == 1) x = places.rounded(x);
  if (sampling.outside == Outside::zeros) return places.held(x, -4, extent + 4);
  if (sampling.outside == Outside::reflection) return reflected(places, axis, x);
  return sampling.taps == 4 ? x : places.held(x, 0, extent - 1);  // cubics reach back from beyond the border
}

/// The weights of the elements around a place, by how far it lies beyond the one before it.
std::vector<int> weights_of(const PlaceCalls& places, std::int64_t taps, int beyond) {
  const int left = places.plus(places.times(beyond, -1), 1);  // to the one after it
  if (taps == 1) return {-1};
  if (taps == 2) return {left, beyond};
  constexpr double a = -0.75;
  const auto near = [&](int x) {  // ((a + 2) x - (a + 3)) x x + 1
    return places.plus(places.mul(places.mul(places.plus(places.times(x, a + 2), -(a + 3)), x), x), 1);
  };
  const auto far = [&](int x) {  // of x + 1: ((a x - 5 a) x + 8 a) x - 4 a
    const int at = places.plus(x, 1);
    const int inner = places.plus(places.mul(places.plus(places.times(at, a), -5 * a), at), 8 * a);
    return places.plus(places.mul(inner, at), -4 * a);
  };
  return {far(beyond), near(beyond), near(left), far(left)};
}

/// Along one dim: which elements, as 64-bit integers, each with a weight, or -1 where it is 1.
struct Taps {
  std::vector<int> index, weight;
};

Taps taps_along(const PlaceCalls& places, const Sampling& sampling, const Axis& axis, int x) {
  const int first = sampling.taps == 1 ? x : places.floor(x);
  const auto last = static_cast<double>(axis.extent - 1);
  Taps taps{{}, weights_of(places, sampling.taps, places.sub(x, first))};
  for (std::int64_t i = 0; i < sampling.taps; ++i) {
    int at = places.plus(first, static_cast<double>(i - (sampling.taps - 1) / 2));
    if (sampling.outside == Outside::reflection) at = reflected(places, axis, at);
    const int inside = places.held(at, 0, last);
    int& weight = taps.weight[static_cast<std::size_t>(i)];
    if (sampling.outside == Outside::zeros) {
      const int is_inside = places.plus(places.times(places.is_set(places.sub(at, inside)), -1), 1);
      weight = weight < 0 ? is_inside : places.mul(weight, is_inside);
    }
    taps.index.push_back(places.cast(inside, DataType::int64));
  }
  return taps;
}

/// All combinations of taps: elements of [batch, image, channels], weighted and added up.
int combined(const PlaceCalls& places, const std::vector<Taps>& dims, const Sizes& image, int table, DataType dtype) {
  Builder& builder = places.builder;
  Sizes at(dims.size(), 0);
  Attributes attributes(OpId::gather_nd);
  attributes.set("batch_dims", 1);
  int sum = -1;
  for (bool more = true; more;) {
    int index = -1, weight = -1;
    for (std::size_t d = 0; d < dims.size(); ++d) {
      const auto tap = static_cast<std::size_t>(at[d]);
      index = index < 0 ? dims[d].index[tap]
                        : places.add(places.mul(index, builder.number(DataType::int64, static_cast<double>(image[d]))),
                                     dims[d].index[tap]);
      const int one = dims[d].weight[tap];
      if (one >= 0) weight = weight < 0 ? one : places.mul(weight, one);
    }
    const Dims points = builder.shape(index);
    const Dims with_one = {points[0], points[1], 1};
    int part =
        places.cast(builder.call(OpId::gather_nd, {table, builder.reshaped(index, with_one)}, &attributes), dtype);
    if (weight >= 0) part = places.mul(part, builder.reshaped(places.cast(weight, dtype), with_one));
    sum = sum < 0 ? part : places.add(sum, part);
    more = false;
    for (std::size_t d = dims.size(); d-- > 0 && !more;) {
      more = ++at[d] < static_cast<std::int64_t>(dims[d].index.size());
      if (!more) at[d] = 0;
    }
  }
  return sum;
}

/// [batch, channels, ...] as [batch, image, channels].
int channels_last(const Calls& calls, int slot) {
  const Dims shape = calls.builder.shape(slot);
  std::int64_t size = 1;
  for (std::size_t d = 2; d < shape.size(); ++d) size *= shape[d];
  const std::int64_t turned[] = {0, 2, 1};
  return calls.permuted(calls.builder.reshaped(slot, {shape[0], shape[1], size}), turned);
}

Slots grid_sample(const NodeCall& call) {
  Builder& builder = call.builder;
  const Sampling sampling = sampling_of(call);
  const PlaceCalls places{{builder}};
  const Dims shape = call.shape(0), grid_shape = call.shape(1);
  const std::size_t rank = shape.size();
  if (rank < 3 || rank > 5 || grid_shape.size() != rank || grid_shape[0] != shape[0] ||
      grid_shape.back() != static_cast<std::int64_t>(rank) - 2 || !is_floating(call.dtype(1))) {
    call.refuse("an input " + to_string(shape) + " with a grid " + to_string(grid_shape));
  }
  Dims result = grid_shape;
  result[0] = shape[0];
  result[1] = shape[1];
  std::int64_t points = 1;
  for (std::size_t d = 2; d < rank; ++d) points *= result[d] = grid_shape[d - 1];
  const auto dims = static_cast<std::int64_t>(rank) - 2;
  const int grid = builder.reshaped(places.widened(call[1]), {shape[0], points, dims});
  std::vector<Taps> taps;
  Sizes image;
  for (std::int64_t d = 0; d < dims; ++d) {
    const std::int64_t extent = shape[static_cast<std::size_t>(d) + 2];
    if (extent < 1) call.refuse("an image of no size");
    const double half = sampling.aligned ? 0 : 0.5;
    const Axis axis{extent, -half, static_cast<double>(extent) - 1 + half};
    const int given = builder.reshaped(places.slice(grid, 2, dims - 1 - d, dims - d), {shape[0], points});
    taps.push_back(taps_along(places, sampling, axis, place_along(places, sampling, axis, given)));
    image.push_back(extent);
  }
  const DataType dtype = is_floating(call.dtype(0)) ? builder.spec(places.widened(call[0])).dtype : call.dtype(0);
  if (!is_floating(dtype)) call.lacks("an image of integers");
  const int found = combined(places, taps, image, channels_last(places, call[0]), dtype);
  const std::int64_t turned[] = {0, 2, 1};
  return {builder.reshaped(places.cast(places.permuted(found, turned), call.dtype(0)), result)};
}

/// The grid that a matrix for each image makes of an even one.
Slots affine_grid(const NodeCall& call) {
  const Dims theta = call.shape(0);
  const Sizes size = call.values(1);
  const std::size_t dims = size.size() < 2 ? 0 : size.size() - 2;
  if ((dims != 2 && dims != 3) ||
      theta != Dims{size[0], static_cast<std::int64_t>(dims), static_cast<std::int64_t>(dims) + 1}) {
    call.refuse("a matrix " + to_string(theta) + " for " + std::to_string(size.size()) + " sizes");
  }
  std::int64_t points = 1;
  constexpr std::int64_t most = 1 << 24;
  for (std::size_t d = 2; d < size.size(); ++d) {
    if (size[d] < 1 || size[d] > most || (points *= size[d]) > most) call.refuse("no points, or more than 16 million");
  }
  const bool aligned = call.integer("align_corners", 0) != 0;
  const auto width = static_cast<std::int64_t>(dims) + 1;
  const Tensor even = Tensor::empty(call.dtype(0), {points, width});
  const StoreElement store = storer_of(call.dtype(0));
  for (std::int64_t i = 0; i < points; ++i) {
    std::int64_t rest = i;
    for (std::size_t d = dims; d-- > 0;) {  // the last dim is the first coordinate
      const auto extent = static_cast<double>(size[d + 2]), at = static_cast<double>(rest % size[d + 2]);
      const double place = aligned ? (extent > 1 ? 2 * at / (extent - 1) - 1 : -1) : (2 * at + 1) / extent - 1;
      store(even.data(), i * width + static_cast<std::int64_t>(dims - 1 - d), place);
      rest /= size[d + 2];
    }
    store(even.data(), i * width + width - 1, 1);
  }
  Attributes attributes(OpId::matmul);
  attributes.set("transpose_b", true);
  Dims result = Dims::filled(dims + 2, static_cast<std::int64_t>(dims));
  result[0] = size[0];
  for (std::size_t d = 0; d < dims; ++d) result[d + 1] = size[d + 2];
  return {call.builder.reshaped(call.builder.call(OpId::matmul, {call.builder.constant(even), call[0]}, &attributes),
                                result)};
}

/// One sample of a box: four neighbours and their weights.
struct Corners {
  std::int64_t index[4] = {};
  double weight[4] = {};
};

Corners corners_at(double y, double x, std::int64_t height, std::int64_t width) {
  Corners found;
  if (!(y >= -1 && y <= static_cast<double>(height) && x >= -1 && x <= static_cast<double>(width))) return found;
  const auto split = [](double place, std::int64_t extent, std::int64_t& low, std::int64_t& high) {
    const double at = std::max(place, 0.0);
    low = std::min(static_cast<std::int64_t>(at), extent - 1);
    high = std::min(low + 1, extent - 1);
    return low == extent - 1 ? 0.0 : at - static_cast<double>(low);
  };
  std::int64_t top = 0, bottom = 0, left = 0, right = 0;
  const double down = split(y, height, top, bottom), across = split(x, width, left, right);
  const std::int64_t rows[] = {top, bottom}, columns[] = {left, right};
  const double by_row[] = {1 - down, down}, by_column[] = {1 - across, across};
  for (std::size_t i = 0; i < 4; ++i) {
    found.index[i] = rows[i / 2] * width + columns[i % 2];
    found.weight[i] = by_row[i / 2] * by_column[i % 2];
  }
  return found;
}

/// What RoiAlign is to make of its boxes, checked against its inputs.
struct Boxes {
  std::int64_t count, rows, columns;  // of the results
  std::int64_t height, width;         // of the images
  std::int64_t ratio;                 // samples of a bin along each dim; 0: as many as it has elements
  double scale, offset;
  bool is_mean;
};

Boxes boxes_of(const NodeCall& call) {
  const Dims shape = call.shape(0), boxes = call.shape(1);
  const std::string mode = call.text("mode", "avg");
  constexpr std::int64_t most = 1 << 12;
  const auto within = [](std::int64_t n, std::int64_t least) { return n >= least && n <= most; };
  const bool fits = shape.size() == 4 && boxes.size() == 2 && boxes[1] == 4 && call.shape(2) == Dims{boxes[0]} &&
                    !is_floating(call.dtype(2));
  if (!fits || shape[2] < 1 || shape[3] < 1 || (mode != "avg" && mode != "max")) {
    call.refuse("an input " + to_string(shape) + " with boxes " + to_string(boxes) + " in mode " + mode);
  }
  const std::string_view otherwise = call.opset < 16 ? "output_half_pixel" : "half_pixel";
  const bool by_half = call.text("coordinate_transformation_mode", otherwise) == "half_pixel";
  const Boxes all{.count = boxes[0],
                  .rows = call.integer("output_height", 1),
                  .columns = call.integer("output_width", 1),
                  .height = shape[2],
                  .width = shape[3],
                  .ratio = call.integer("sampling_ratio", 0),
                  .scale = call.real("spatial_scale", 1),
                  .offset = by_half ? 0.5 : 0,
                  .is_mean = mode == "avg"};
  if (!within(all.rows, 1) || !within(all.columns, 1) || !within(all.ratio, 0)) {
    call.refuse("results or a sampling_ratio that are not positive or over " + std::to_string(most));
  }
  return all;
}

constexpr double most_samples = 1 << 24;
using Bin = std::vector<Corners>;

/// The samples of each bin of one box, its corners given as left, top, right and bottom; `first` is its image's place.
void sample_box(const NodeCall& call, const Boxes& all, const double (&box)[4], std::int64_t first,
                std::vector<Bin>& bins) {
  double height = box[3] - box[1], width = box[2] - box[0];
  if (all.offset == 0) height = std::max(height, 1.0), width = std::max(width, 1.0);
  const double bin_height = height / static_cast<double>(all.rows),
               bin_width = width / static_cast<double>(all.columns);
  const auto count = [&](double size) { return all.ratio > 0 ? static_cast<double>(all.ratio) : std::ceil(size); };
  const double down = count(bin_height), across = count(bin_width);
  if (!(down * across * static_cast<double>(all.rows * all.columns) < most_samples)) {
    call.refuse("a box of more than 16 million samples");
  }
  for (std::int64_t bin = 0; bin < all.rows * all.columns; ++bin) {
    Bin& found = bins.emplace_back();
    for (double i = 0; i < down; ++i) {
      for (double j = 0; j < across; ++j) {
        const double y = box[1] + (static_cast<double>(bin / all.columns) + (i + 0.5) / down) * bin_height;
        const double x = box[0] + (static_cast<double>(bin % all.columns) + (j + 0.5) / across) * bin_width;
        Corners& corners = found.emplace_back(corners_at(y, x, all.height, all.width));
        for (std::int64_t& index : corners.index) index += first;
      }
    }
  }
}

/// The samples of all bins, and how many the largest has.
std::pair<std::vector<Bin>, std::size_t> sampled(const NodeCall& call, const Boxes& all) {
  const Known boxes(call, 1), images(call, 2);
  std::vector<Bin> bins;
  std::size_t most = 1;
  for (std::int64_t i = 0; i < all.count; ++i) {
    const auto image = static_cast<std::int64_t>(images.real(i));
    if (image < 0 || image >= call.shape(0)[0]) call.refuse("a box of image " + std::to_string(image));
    const auto at = [&](std::int64_t side) { return boxes.real(i * 4 + side) * all.scale - all.offset; };
    sample_box(call, all, {at(0), at(1), at(2), at(3)}, image * all.height * all.width, bins);
    most = std::max(most, bins.back().size());
    if (static_cast<double>(bins.size() * most) > most_samples) call.refuse("boxes of more than 16 million samples");
  }
  return {std::move(bins), most};
}

/// Boxes of images, each as an image of one size. The boxes must be known before a run.
Slots roi_align(const NodeCall& call) {
  const Boxes all = boxes_of(call);
  const auto [bins, each] = sampled(call, all);
  Builder& builder = call.builder;
  const Calls calls{builder};
  const int x = calls.widened(call[0]);
  const DataType dtype = builder.spec(x).dtype;
  const auto count = static_cast<std::int64_t>(bins.size()), samples = static_cast<std::int64_t>(each);
  Sizes indices;
  const Tensor weights = Tensor::empty(dtype, {count, samples, 4, 1});
  std::int64_t place = 0;
  for (const Bin& bin : bins) {
    for (std::size_t i = 0; i < each; ++i) {
      const bool is_there = i < bin.size();
      const Corners corners = is_there ? bin[i] : bin.empty() || all.is_mean ? Corners{} : bin[0];
      for (std::size_t corner = 0; corner < 4; ++corner, ++place) {
        const double share = all.is_mean && is_there ? static_cast<double>(bin.size()) : 1;
        indices.push_back(corners.index[corner]);
        storer_of(dtype)(weights.data(), place, corners.weight[corner] / share);
      }
    }
  }
  const Dims shape = call.shape(0);
  const int table = builder.reshaped(channels_last(calls, x), {shape[0] * shape[2] * shape[3], shape[1]});
  const int index = builder.reshaped(builder.integers(indices), {count, samples, 4});
  const int parts = calls.mul(calls.gathered(table, 0, index), builder.constant(weights));
  const std::int64_t both[] = {1, 2}, turned[] = {0, 3, 1, 2};
  // The largest is that of the weighted corners, not of their sums: so does the operator's definition.
  const int found = calls.reduce(all.is_mean ? OpId::reduce_sum : OpId::reduce_max, parts, both, false);
  const int result = builder.reshaped(found, {all.count, all.rows, all.columns, shape[1]});
  return {calls.cast(calls.permuted(result, turned), call.dtype(0))};
}

constexpr Operator sampling_rows[] = {
    {"GridSample", grid_sample}, {"AffineGrid", affine_grid}, {"RoiAlign", roi_align}};

}  // namespace

std::span<const Operator> sampling_operators() { return sampling_rows; }

}  // namespace xpuruntime::native
