#include <algorithm>

#include "backends/cpu/onednn/conv_programs.h"
#include "backends/cpu/onednn/types.h"
#include "core/backward.h"

namespace xpuruntime::cpu {
namespace {

using Desc = dnnl::memory::desc;
using Dimensions = dnnl::memory::dims;
using Base = Place::Base;

/// What one task computes a gradient of: images and groups, or channels of the only group.
struct Slice {
  std::int64_t image = 0, images = 0;
  std::int64_t group = 0, groups = 0;
  std::int64_t in = 0, ins = 0;    // input channels of each group
  std::int64_t out = 0, outs = 0;  // output channels of each group
};

bool same_size(const Slice& a, const Slice& b) {
  return a.images == b.images && a.groups == b.groups && a.ins == b.ins && a.outs == b.outs;
}

struct Dtypes {
  DataType in, weight, gradient, in_gradient, weight_gradient, bias_gradient;
};

Desc any_layout(const Desc& desc) { return Desc(desc.dims(), desc.data_type(), dnnl::memory::format_tag::any); }

std::int64_t bytes_of(std::int64_t elements, DataType dtype) {
  return elements * static_cast<std::int64_t>(size_of(dtype));
}

/// The windows as oneDNN counts them.
struct Windows {
  explicit Windows(const ConvCall& call) {
    const ConvShape& shape = call.shape;
    for (std::size_t i = call.axis; i < 3; ++i) {
      stride.push_back(shape.stride[i]);
      dilation.push_back(shape.dilation[i] - 1);  // the gaps
      before.push_back(shape.padding[i]);
      const std::int64_t reach = (shape.out[i] - 1) * shape.stride[i] + (shape.kernel[i] - 1) * shape.dilation[i] + 1;
      after.push_back(reach - shape.in[i] - shape.padding[i]);
    }
  }
  Dimensions stride, dilation, before, after;
};

class BackwardWriter {
 public:
  BackwardWriter(const ConvCall& call, const Dtypes& dtypes)
      : call_(call), dtypes_(dtypes), windows_(call), builder_(call.threads) {}

  void add_input(const Slice& slice) {
    builder_.begin_task();
    const Pieces& pieces = pieces_for(slice, input_pieces_, [&] { return make_input(slice); });
    const Place weight = builder_.converted(pieces.first, weight_place(slice, Base::input, dtypes_.weight));
    const Place gradient = builder_.converted(pieces.second, gradient_place(slice));
    const Place out = input_place(slice, Base::output, dtypes_.in_gradient);
    finish(pieces, {weight, gradient}, out, {});
  }

  void add_weight(const Slice& slice) {
    builder_.begin_task();
    const Pieces& pieces = pieces_for(slice, weight_pieces_, [&] { return make_weight(slice); });
    const Place in = builder_.converted(pieces.first, input_place(slice, Base::input, dtypes_.in));
    const Place gradient = builder_.converted(pieces.second, gradient_place(slice));
    std::vector<Place> bias;
    if (call_.has_bias) {
      const std::int64_t channel = slice.group * call_.shape.out_channels + slice.out;
      bias.push_back({Base::output, 2, bytes_of(channel, dtypes_.bias_gradient)});
    }
    finish(pieces, {in, gradient}, weight_place(slice, Base::output, dtypes_.weight_gradient), bias);
  }

  Program take() {
    builder_.program().token = call_.tasks_text(builder_.program().tasks.size());
    return std::move(builder_.program());
  }

 private:
  struct Pieces {
    Slice size = {};
    std::size_t primitive = 0;
    Conversion first = {}, second = {}, out = {};
  };

  void finish(const Pieces& pieces, std::vector<Place> arguments, const Place& to, const std::vector<Place>& more) {
    const Place out = pieces.out.bytes == 0 ? to : builder_.workspace(pieces.out.bytes);
    arguments.push_back(out);
    arguments.insert(arguments.end(), more.begin(), more.end());
    builder_.step(pieces.primitive, std::move(arguments));
    if (pieces.out.bytes != 0) builder_.step(pieces.out.piece, {out, to});
  }

  template <class Make>
  const Pieces& pieces_for(const Slice& slice, std::vector<Pieces>& made, const Make& make) {
    for (const Pieces& pieces : made) {
      if (same_size(pieces.size, slice)) return pieces;
    }
    return made.emplace_back(make());
  }

  /// Some channels of [batch, channels, pixels...].
  Desc activations(DataType dtype, std::int64_t images, std::int64_t channels, std::int64_t all_channels,
                   const Extents& extents) const {
    // The stride over a single image is never taken; oneDNN knows a dense layout by it.
    Dimensions dims = {images, channels};
    Dimensions strides = {(images == 1 ? channels : all_channels) * volume(extents), volume(extents)};
    std::int64_t step = volume(extents);
    for (std::size_t i = call_.axis; i < 3; ++i) {
      dims.push_back(extents[i]);
      step /= extents[i];
      strides.push_back(step);
    }
    return Desc(dims, onednn_type(dtype), strides);
  }

  Desc input_desc(const Slice& slice, DataType dtype) const {
    const ConvShape& shape = call_.shape;
    return activations(dtype, slice.images, slice.groups * slice.ins, shape.groups * shape.in_channels, shape.in);
  }
  Desc gradient_desc(const Slice& slice) const {
    const ConvShape& shape = call_.shape;
    return activations(dtypes_.gradient, slice.images, slice.groups * slice.outs, shape.groups * shape.out_channels,
                       shape.out);
  }
  Desc weight_desc(const Slice& slice, DataType dtype) const {
    const ConvShape& shape = call_.shape;
    Dimensions dims = {slice.outs, slice.ins}, strides = {shape.depth(), shape.taps()};
    if (shape.groups > 1) {
      dims.insert(dims.begin(), slice.groups);
      strides.insert(strides.begin(), shape.out_channels * shape.depth());
    }
    std::int64_t step = shape.taps();
    for (std::size_t i = call_.axis; i < 3; ++i) {
      step /= shape.kernel[i];
      dims.push_back(shape.kernel[i]);
      strides.push_back(step);
    }
    return Desc(dims, onednn_type(dtype), strides);
  }

  Place input_place(const Slice& slice, Base base, DataType dtype) const {
    const ConvShape& shape = call_.shape;
    const std::int64_t channel = (slice.image * shape.groups + slice.group) * shape.in_channels + slice.in;
    return {base, 0, bytes_of(channel * volume(shape.in), dtype)};
  }
  Place weight_place(const Slice& slice, Base base, DataType dtype) const {
    const ConvShape& shape = call_.shape;
    const std::int64_t channel = slice.group * shape.out_channels + slice.out;
    return {base, 1, bytes_of(channel * shape.depth() + slice.in * shape.taps(), dtype)};
  }
  Place gradient_place(const Slice& slice) const {
    const ConvShape& shape = call_.shape;
    const std::int64_t channel = (slice.image * shape.groups + slice.group) * shape.out_channels + slice.out;
    return {Base::input, static_cast<std::uint8_t>(call_.has_bias ? 3 : 2),
            bytes_of(channel * volume(shape.out), dtypes_.gradient)};
  }

  dnnl::convolution_forward::primitive_desc hint(const Desc& in, const Desc& weight, const Desc& out) const {
    return {{dnnl::prop_kind::forward_training, dnnl::algorithm::convolution_direct, any_layout(in), any_layout(weight),
             any_layout(out), windows_.stride, windows_.dilation, windows_.before, windows_.after},
            onednn_engine()};
  }

  Pieces make_input(const Slice& slice) {
    const Desc in = input_desc(slice, dtypes_.in_gradient), weight = weight_desc(slice, dtypes_.weight),
               out = gradient_desc(slice);
    const dnnl::convolution_backward_data::desc desc(dnnl::algorithm::convolution_direct, any_layout(in),
                                                     any_layout(weight), any_layout(out), windows_.stride,
                                                     windows_.dilation, windows_.before, windows_.after);
    const dnnl::convolution_backward_data::primitive_desc made(desc, onednn_attributes(), onednn_engine(),
                                                               hint(input_desc(slice, dtypes_.in), weight, out));
    Pieces pieces = {slice, builder_.piece(made, {{DNNL_ARG_WEIGHTS, made.weights_desc()},
                                                  {DNNL_ARG_DIFF_DST, made.diff_dst_desc()},
                                                  {DNNL_ARG_DIFF_SRC, made.diff_src_desc()}})};
    pieces.first = builder_.conversion(weight, made.weights_desc(), made.weights_desc());
    pieces.second = builder_.conversion(out, made.diff_dst_desc(), made.diff_dst_desc());
    pieces.out = builder_.conversion(made.diff_src_desc(), in, made.diff_src_desc());
    return pieces;
  }

  Pieces make_weight(const Slice& slice) {
    const Desc in = input_desc(slice, dtypes_.in), weight = weight_desc(slice, dtypes_.weight_gradient),
               out = gradient_desc(slice);
    const Desc bias = call_.has_bias ? Desc({slice.groups * slice.outs}, onednn_type(dtypes_.bias_gradient),
                                            dnnl::memory::format_tag::a)
                                     : Desc();
    const dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, any_layout(in),
                                                        any_layout(weight), bias, any_layout(out), windows_.stride,
                                                        windows_.dilation, windows_.before, windows_.after);
    const dnnl::convolution_backward_weights::primitive_desc made(desc, onednn_attributes(), onednn_engine(),
                                                                  hint(in, weight_desc(slice, dtypes_.weight), out));
    std::vector<std::pair<int, Desc>> arguments = {{DNNL_ARG_SRC, made.src_desc()},
                                                   {DNNL_ARG_DIFF_DST, made.diff_dst_desc()},
                                                   {DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}};
    if (call_.has_bias) arguments.emplace_back(DNNL_ARG_DIFF_BIAS, bias);
    Pieces pieces = {slice, builder_.piece(made, std::move(arguments))};
    pieces.first = builder_.conversion(in, made.src_desc(), made.src_desc());
    pieces.second = builder_.conversion(out, made.diff_dst_desc(), made.diff_dst_desc());
    pieces.out = builder_.conversion(made.diff_weights_desc(), weight, made.diff_weights_desc());
    return pieces;
  }

  const ConvCall& call_;
  Dtypes dtypes_;
  Windows windows_;
  ProgramBuilder builder_;
  std::vector<Pieces> input_pieces_ = {}, weight_pieces_ = {};
};

/// The length of a part when `extent` is cut into `parts` of whole units.
std::int64_t part_length(std::int64_t extent, std::int64_t parts, std::int64_t unit) {
  return std::min(extent, round_up(divide_up(extent, parts), unit));
}

// Whole blocks of every layout that oneDNN uses.
constexpr std::int64_t channel_unit = 64;

/// The gradient of the input is cut by images, else by groups or channels: no sum is cut.
void add_inputs(const ConvCall& call, BackwardWriter& writer) {
  const ConvShape& shape = call.shape;
  const std::int64_t image_parts = std::min(call.parts, shape.batch), rest = divide_up(call.parts, image_parts);
  const std::int64_t images = part_length(shape.batch, image_parts, 1);
  const std::int64_t groups = part_length(shape.groups, rest, 1);
  const std::int64_t ins = shape.groups > 1 ? shape.in_channels : part_length(shape.in_channels, rest, channel_unit);
  for (std::int64_t n = 0; n < shape.batch; n += images) {
    for (std::int64_t g = 0; g < shape.groups; g += groups) {
      for (std::int64_t c = 0; c < shape.in_channels; c += ins) {
        writer.add_input({n, std::min(images, shape.batch - n), g, std::min(groups, shape.groups - g), c,
                          std::min(ins, shape.in_channels - c), 0, shape.out_channels});
      }
    }
  }
}

/// That of the weight sums over images: it is cut by groups or output channels.
void add_weights(const ConvCall& call, BackwardWriter& writer) {
  const ConvShape& shape = call.shape;
  const std::int64_t groups = part_length(shape.groups, call.parts, 1);
  const std::int64_t outs =
      shape.groups > 1 ? shape.out_channels : part_length(shape.out_channels, call.parts, channel_unit);
  for (std::int64_t g = 0; g < shape.groups; g += groups) {
    for (std::int64_t o = 0; o < shape.out_channels; o += outs) {
      writer.add_weight({0, shape.batch, g, std::min(groups, shape.groups - g), 0, shape.in_channels, o,
                         std::min(outs, shape.out_channels - o)});
    }
  }
}

}  // namespace

Verdict supports_conv_backward(const Problem& problem) {
  const DataType in = problem.inputs[0].dtype;
  if (in != DataType::float32 && in != DataType::bfloat16) return refuse_dtype("input 0", in, "f32 and bf16");
  if (problem.inputs[1].dtype != in) return Verdict::no("input and weight differ in dtype");
  if (problem.inputs.back().dtype != in) return Verdict::no("input and gradient differ in dtype");
  for (const TensorSpec& output : problem.outputs) {
    if (output.dtype != in && output.dtype != DataType::float32) {
      return refuse_dtype("an output", output.dtype, "what the input has, or f32");
    }
    if (!output.contiguous) return Verdict::no("an output is not contiguous");
  }
  for (const TensorSpec& input : problem.inputs) {
    if (!input.contiguous) return Verdict::no("an input is not contiguous");
  }
  const Problem forward = forward_of(problem);
  if (const Verdict verdict = supports_modest_windows(forward); !verdict.supported) return verdict;
  return supports_padding(conv_shape(forward));
}

Program conv_backward_program(const Problem& problem) {
  const ConvCall call = conv_call(forward_of(problem));
  const Dtypes dtypes = {call.in,
                         problem.inputs[1].dtype,
                         problem.inputs.back().dtype,
                         problem.outputs[0].dtype,
                         problem.outputs[1].dtype,
                         problem.outputs.back().dtype};
  BackwardWriter writer(call, dtypes);
  add_inputs(call, writer);
  add_weights(call, writer);
  return writer.take();
}

}  // namespace xpuruntime::cpu
