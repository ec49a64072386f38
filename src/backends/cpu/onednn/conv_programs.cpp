#include "backends/cpu/onednn/conv_programs.h"

#include <algorithm>

#include "backends/cpu/conv/channels_last.h"
#include "backends/cpu/matmul/split.h"
#include "backends/cpu/onednn/conv_slices.h"
#include "backends/cpu/onednn/types.h"

namespace xpuruntime::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dimensions = dnnl::memory::dims;
using Base = Place::Base;

constexpr double multiplications_per_us = 5e4;

std::int64_t bytes_of(std::int64_t elements, DataType dtype) {
  return elements * static_cast<std::int64_t>(size_of(dtype));
}

/// The spatial dims of the call, of three or of two.
Dimensions spatial(const ConvCall& call, const Extents& extents) {
  return Dimensions(extents.begin() + static_cast<std::ptrdiff_t>(call.axis), extents.end());
}

/// Some images, or rows of one, with all their channels last.
Desc pixels_of(const ConvCall& call, DataType dtype, std::int64_t images, std::int64_t channels, const Extents& whole,
               std::int64_t rows) {
  Dimensions dims = {images, channels}, strides = {0, 1};
  std::int64_t step = channels;
  for (std::size_t i = call.axis; i < 3; ++i) {
    dims.push_back(i == call.axis ? rows : whole[i]);
    strides.push_back(0);
  }
  for (std::size_t i = dims.size() - 1; i > 1; --i) {
    strides[i] = step;
    step *= dims[i];
  }
  strides[0] = images == 1 ? step : channels * volume(whole);
  return Desc(dims, onednn_type(dtype), strides);
}

/// A part of a contiguous [batch, channels, spatial...] tensor: all of `whole` but the rows along the first dim.
Desc activations(const ConvCall& call, DataType dtype, std::int64_t images, std::int64_t channels,
                 std::int64_t all_channels, const Extents& whole, std::int64_t rows) {
  if (call.channels_last) return pixels_of(call, dtype, images, channels, whole, rows);
  // The stride over a single image is never taken; oneDNN knows a dense layout by it.
  const std::int64_t image_step = (images == 1 ? channels : all_channels) * volume(whole);
  Dimensions dims = {images, channels}, strides = {image_step, volume(whole)};
  std::int64_t step = volume(whole);
  for (std::size_t i = call.axis; i < 3; ++i) {
    dims.push_back(i == call.axis ? rows : whole[i]);
    step /= whole[i];
    strides.push_back(step);
  }
  return Desc(dims, onednn_type(dtype), strides);
}

/// The descriptors of one slice in the tensors' own layouts.
struct SliceDescs {
  Desc in, weight, bias, out;
  Dimensions padding_before, padding_after;
};

/// Of [groups,] output channels, input channels, filter; the input channels are the innermost where they are last.
Dimensions weight_strides(const ConvCall& call, const Dimensions& weight) {
  Dimensions strides(weight.size(), 1);
  const std::size_t inputs = call.shape.groups > 1 ? 2 : 1;
  std::int64_t step = call.weight_last ? weight[inputs] : 1;
  for (std::size_t i = weight.size(); i-- > 0;) {
    if (call.weight_last && i == inputs) continue;
    strides[i] = step;
    step *= weight[i];
  }
  return strides;
}

SliceDescs describe(const ConvCall& call, const ConvSlice& slice) {
  const ConvShape& shape = call.shape;
  const InputRows rows = input_rows(shape, call.axis, slice.row, slice.rows);
  SliceDescs descs;
  descs.in = activations(call, call.in, slice.images, slice.groups * shape.in_channels,
                         shape.groups * shape.in_channels, shape.in, rows.rows);
  descs.out = activations(call, call.out, slice.images, slice.groups * slice.channels,
                          shape.groups * shape.out_channels, shape.out, slice.rows);
  Dimensions weight = {slice.channels, shape.in_channels};
  if (shape.groups > 1) weight.insert(weight.begin(), slice.groups);
  for (const std::int64_t extent : spatial(call, shape.kernel)) weight.push_back(extent);
  descs.weight = Desc(weight, onednn_type(call.in), weight_strides(call, weight));
  if (call.has_bias) descs.bias = Desc({slice.groups * slice.channels}, onednn_type(call.bias), Dimensions{1});
  descs.padding_before = descs.padding_after = spatial(call, shape.padding);
  descs.padding_before[0] = rows.padding_before;
  descs.padding_after[0] = rows.padding_after;
  // What the stride jumps over at the far end counts as negative padding.
  for (std::size_t i = call.axis + 1; i < 3; ++i) {
    const std::int64_t reach = (shape.out[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1;
    descs.padding_after[i - call.axis] = reach - shape.in[i] - shape.padding[i];
  }
  return descs;
}

Desc any_layout(const Desc& desc) { return Desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any); }

dnnl::convolution_forward::primitive_desc make_description(const ConvCall& call, const SliceDescs& descs, bool any) {
  const auto layout = [&](const Desc& desc) { return any ? any_layout(desc) : desc; };
  const auto pixels = [&](const Desc& desc) { return call.channels_last ? desc : layout(desc); };
  Dimensions dilation = spatial(call, call.shape.dilation);
  for (std::int64_t& value : dilation) --value;  // oneDNN counts the gaps
  const dnnl::convolution_forward::desc desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                             pixels(descs.in), layout(descs.weight), descs.bias, pixels(descs.out),
                                             spatial(call, call.shape.stride), dilation, descs.padding_before,
                                             descs.padding_after);
  return {desc, onednn_attributes(), onednn_engine()};
}

/// Where the slice's parts of the tensors begin.
struct SlicePlaces {
  Place in, weight, bias, out;
};

SlicePlaces places_of(const ConvCall& call, const ConvSlice& slice) {
  const ConvShape& shape = call.shape;
  const std::int64_t in_row = volume(shape.in) / shape.in[call.axis];
  const std::int64_t out_row = volume(shape.out) / shape.out[call.axis];
  const std::int64_t first_in = input_rows(shape, call.axis, slice.row, slice.rows).row;
  const std::int64_t in_channel = slice.image * shape.groups * shape.in_channels + slice.group * shape.in_channels;
  const std::int64_t channel = slice.group * shape.out_channels + slice.channel;
  const std::int64_t out_channel = slice.image * shape.groups * shape.out_channels + channel;
  const Place weight = {Base::input, 1, bytes_of(channel * shape.depth(), call.in)};
  const Place bias = {Base::input, 2, bytes_of(channel, call.bias)};
  if (call.channels_last) {  // of slices of whole pixels
    const std::int64_t in_pixel = slice.image * volume(shape.in) + first_in * in_row;
    const std::int64_t out_pixel = slice.image * volume(shape.out) + slice.row * out_row;
    return {{Base::input, 0, bytes_of(in_pixel * shape.groups * shape.in_channels, call.in)},
            weight,
            bias,
            {Base::output, 0, bytes_of(out_pixel * shape.groups * shape.out_channels, call.out)}};
  }
  return {{Base::input, 0, bytes_of(in_channel * volume(shape.in) + first_in * in_row, call.in)},
          weight,
          bias,
          {Base::output, 0, bytes_of(out_channel * volume(shape.out) + slice.row * out_row, call.out)}};
}

/// Writes the tasks of plain and blocked programs.
class SliceWriter {
 public:
  SliceWriter(const ConvCall& call, bool blocked) : call_(call), blocked_(blocked), builder_(call.threads) {}

  void add(const ConvSlice& slice) {
    const Pieces& pieces = pieces_for(slice);
    const SlicePlaces places = places_of(call_, slice);
    const Place in = builder_.converted(pieces.in, places.in);
    const Place weight = builder_.converted(pieces.weight, places.weight);
    const bool converts_out = pieces.out.bytes != 0;
    const Place out = converts_out ? builder_.workspace(pieces.out.bytes) : places.out;
    std::vector<Place> arguments = {in, weight, out};
    if (call_.has_bias) arguments.push_back(places.bias);
    builder_.step(pieces.conv, std::move(arguments));
    if (converts_out) builder_.step(pieces.out.piece, {out, places.out});
  }

  void begin_task() { builder_.begin_task(); }
  Program take(std::string token) {
    builder_.program().token = std::move(token) + " " + call_.tasks_text(builder_.program().tasks.size());
    return std::move(builder_.program());
  }

 private:
  struct Pieces {
    ConvSlice size = {};
    std::int64_t padding_before = 0, padding_after = 0;
    std::size_t conv = 0;
    Conversion in = {}, weight = {}, out = {};
  };

  // Slices of one size and padding share their primitives.
  const Pieces& pieces_for(const ConvSlice& slice) {
    const InputRows rows = input_rows(call_.shape, call_.axis, slice.row, slice.rows);
    const ConvSlice size = {0, slice.images, 0, slice.groups, 0, slice.channels, 0, slice.rows};
    for (const Pieces& made : made_) {
      if (made.size == size && made.padding_before == rows.padding_before && made.padding_after == rows.padding_after) {
        return made;
      }
    }
    return made_.emplace_back(make_pieces(slice, size, rows));
  }

  Pieces make_pieces(const ConvSlice& slice, const ConvSlice& size, const InputRows& rows) {
    const SliceDescs descs = describe(call_, slice);
    const auto description = make_description(call_, descs, blocked_);
    const Desc in = description.src_desc(), weight = description.weights_desc(), out = description.dst_desc();
    std::vector<std::pair<int, Desc>> arguments = {{DNNL_ARG_SRC, in}, {DNNL_ARG_WEIGHTS, weight}, {DNNL_ARG_DST, out}};
    if (call_.has_bias) arguments.emplace_back(DNNL_ARG_BIAS, descs.bias);
    Pieces pieces = {size, rows.padding_before, rows.padding_after, builder_.piece(description, std::move(arguments))};
    pieces.in = builder_.conversion(descs.in, in, in);
    pieces.weight = builder_.conversion(descs.weight, weight, weight);
    pieces.out = builder_.conversion(out, descs.out, out);
    return pieces;
  }

  const ConvCall& call_;
  bool blocked_;
  ProgramBuilder builder_;
  std::vector<Pieces> made_ = {};
};

MatmulShape pointwise_shape(const ConvShape& conv) {
  MatmulShape shape;
  const std::int64_t pixels = volume(conv.out);
  shape.m = conv.out_channels;
  shape.n = pixels;
  shape.k = conv.in_channels;
  shape.batch_count = conv.batch;
  shape.a.row = shape.k;
  shape.b.row = shape.c.row = pixels;
  shape.b.batch[0] = shape.k * pixels;
  shape.c.batch[0] = shape.m * pixels;
  return shape;
}

/// The pieces of a pointwise convolution for slices of one size.
struct PointwisePieces {
  std::int64_t rows = 0, columns = 0;
  std::size_t fill = 0, product = 0;
};

PointwisePieces make_pointwise(const ConvCall& call, const MatmulShape& shape, const Slice& slice,
                               ProgramBuilder& builder) {
  const auto type = onednn_type(call.in);
  const Desc weight({slice.rows, shape.k}, type, {shape.k, 1}), in({shape.k, slice.columns}, type, {shape.n, 1}),
      out({slice.rows, slice.columns}, onednn_type(call.out), {shape.n, 1});
  PointwisePieces pieces = {slice.rows, slice.columns};
  dnnl::primitive_attr attributes = onednn_attributes();
  if (call.has_bias) {
    // oneDNN adds no bias to rows, but it adds to what is there.
    const Desc bias({slice.rows, slice.columns}, onednn_type(call.bias), {1, 0});
    const dnnl::reorder::primitive_desc fill(onednn_engine(), bias, onednn_engine(), out, onednn_attributes());
    pieces.fill = builder.piece(fill, {{DNNL_ARG_FROM, bias}, {DNNL_ARG_TO, out}});
    dnnl::post_ops sum;
    sum.append_sum(1);
    attributes.set_post_ops(sum);
  }
  const dnnl::matmul::primitive_desc product({weight, in, out}, attributes, onednn_engine());
  pieces.product = builder.piece(product, {{DNNL_ARG_SRC, weight}, {DNNL_ARG_WEIGHTS, in}, {DNNL_ARG_DST, out}});
  return pieces;
}

}  // namespace

std::string ConvCall::tasks_text(std::size_t tasks) const {
  return "tasks=" + std::to_string(tasks) + (large && !fixed_parts ? split_by_threads : "");
}

bool is_conv_of_pixels(const Problem& problem) {
  if (is_conv_channels_last(problem)) return true;
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  return problem.direction == Direction::forward && has_channels_last(in) && has_channels_last(out) &&
         !(in.contiguous && out.contiguous) && problem.inputs[1].contiguous;
}

ConvCall conv_call(const Problem& problem) {
  ConvCall call;
  call.shape = conv_shape(problem);
  call.axis = problem.op == OpId::conv3d ? 0 : 1;
  call.in = problem.inputs[0].dtype;
  call.out = problem.outputs[0].dtype;
  call.has_bias = problem.inputs.size() > 2;
  if (call.has_bias) call.bias = problem.inputs[2].dtype;
  call.threads = conv_threads(problem, call.shape);
  call.large = conv_is_large(call.shape);
  call.channels_last = is_conv_of_pixels(problem);
  call.weight_last = call.channels_last && is_conv_channels_last(problem);
  call.fixed_parts = problem.limits.deterministic;
  call.parts = call.threads;
  if (call.fixed_parts) {
    constexpr double least = 1e6, most_parts = 16;
    const double outputs = static_cast<double>(call.shape.batch * call.shape.groups * call.shape.out_channels) *
                           static_cast<double>(volume(call.shape.out));
    const double work = outputs * static_cast<double>(call.shape.depth()) / least;
    call.parts = static_cast<std::int64_t>(std::clamp(work, 1.0, most_parts));
  }
  return call;
}

Program pointwise_program(const ConvCall& call) {
  const MatmulShape shape = pointwise_shape(call.shape);
  ProgramBuilder builder(call.threads);
  std::vector<PointwisePieces> made;
  for (const Slice& slice : split_product(shape, call.threads, call.fixed_parts, multiplications_per_us)) {
    const auto same = [&](const PointwisePieces& p) { return p.rows == slice.rows && p.columns == slice.columns; };
    auto pieces = std::find_if(made.begin(), made.end(), same);
    if (pieces == made.end()) pieces = made.insert(made.end(), make_pointwise(call, shape, slice, builder));
    builder.begin_task();
    for (std::int64_t i = slice.batch; i < slice.batch + slice.batches; ++i) {
      const Place out = {Base::output, 0,
                         bytes_of(i * shape.c.batch[0] + slice.row * shape.n + slice.column, call.out)};
      if (call.has_bias) builder.step(pieces->fill, {{Base::input, 2, bytes_of(slice.row, call.bias)}, out});
      builder.step(pieces->product, {{Base::input, 1, bytes_of(slice.row * shape.k, call.in)},
                                     {Base::input, 0, bytes_of(i * shape.b.batch[0] + slice.column, call.in)},
                                     out});
    }
  }
  builder.program().token = "product " + call.tasks_text(builder.program().tasks.size());
  return std::move(builder.program());
}

Program plain_program(const ConvCall& call) {
  SliceWriter writer(call, false);
  const std::int64_t unit = call.shape.out_channels >= 64 * call.parts ? 64 : 1;
  const std::int64_t channels = round_up(divide_up(call.shape.out_channels, call.parts), unit);
  for (std::int64_t c = 0; c < call.shape.out_channels; c += channels) {
    writer.begin_task();
    // One image at a time: only then is a part of the channels dense in memory.
    for (std::int64_t n = 0; n < call.shape.batch; ++n) {
      writer.add({n, 1, 0, 1, c, std::min(channels, call.shape.out_channels - c), 0, call.shape.out[call.axis]});
    }
  }
  return writer.take("plain");
}

Program blocked_program(const ConvCall& call) {
  SliceWriter writer(call, true);
  for (const ConvSlice& slice : split_conv(call.shape, call.axis, call.parts, call.channels_last)) {
    writer.begin_task();
    writer.add(slice);
  }
  return writer.take(call.channels_last ? "channels_last" : "blocked");
}

}  // namespace xpuruntime::cpu
