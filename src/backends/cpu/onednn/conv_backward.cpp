#include <algorithm>

#include "backends/cpu/conv/im2col_backward.h"
#include "backends/cpu/onednn/conv_programs.h"
#include "backends/cpu/onednn/types.h"
#include "backends/cpu/reduce/kernels.h"
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
  DataType in, weight, gradient, in_gradient, weight_gradient;
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
    finish(pieces, {weight, gradient}, out);
  }

  /// Into the weight's gradient number `part`.
  void add_weight(const Slice& slice, std::int64_t part) {
    builder_.begin_task();
    const Pieces& pieces = pieces_for(slice, weight_pieces_, [&] { return make_weight(slice); });
    const Place in = builder_.converted(pieces.first, input_place(slice, Base::input, dtypes_.in));
    const Place gradient = builder_.converted(pieces.second, gradient_place(slice));
    Place out = weight_place(slice, Base::output, dtypes_.weight_gradient);
    const ConvShape& shape = call_.shape;
    out.bytes += bytes_of(part * shape.groups * shape.out_channels * shape.depth(), dtypes_.weight_gradient);
    finish(pieces, {in, gradient}, out);
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

  void finish(const Pieces& pieces, std::vector<Place> arguments, const Place& to) {
    const Place out = pieces.out.bytes == 0 ? to : builder_.workspace(pieces.out.bytes);
    arguments.push_back(out);
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
    const dnnl::convolution_backward_weights::desc desc(dnnl::algorithm::convolution_direct, any_layout(in),
                                                        any_layout(weight), any_layout(out), windows_.stride,
                                                        windows_.dilation, windows_.before, windows_.after);
    const dnnl::convolution_backward_weights::primitive_desc made(desc, onednn_attributes(), onednn_engine(),
                                                                  hint(in, weight_desc(slice, dtypes_.weight), out));
    Pieces pieces = {slice, builder_.piece(made, {{DNNL_ARG_SRC, made.src_desc()},
                                                  {DNNL_ARG_DIFF_DST, made.diff_dst_desc()},
                                                  {DNNL_ARG_DIFF_WEIGHTS, made.diff_weights_desc()}})};
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

/// So many images go into one sum of the weight's gradient; 0 where one is too many. oneDNN adds up all terms in one
/// f32, or all images' sums where the convolution is a plain product (not on aarch64).
std::int64_t images_at_once(const ConvShape& shape) {
  const std::int64_t images = std::max<std::int64_t>(shape.batch, 1);
  const std::int64_t positions = std::max<std::int64_t>(volume(shape.out), 1);
#ifdef __aarch64__
  constexpr bool sums_products_well = false;
#else
  constexpr bool sums_products_well = true;
#endif
  const std::int64_t most = most_terms_at_once(images * positions);
  const std::int64_t each = sums_products_well && shape.pointwise() ? 1 : positions;
  return each > most ? 0 : std::clamp<std::int64_t>(most / 2 / each, 1, images);
}

/// oneDNN 2.6 adds what lies beside its copies of small images to a bf16 gradient: of conv2d where windows take
/// steps, of conv3d also where they take none. On aarch64 it reads outside of small volumes of any dtype.
bool has_right_weight_gradient(const Problem& problem, const ConvShape& shape) {
#ifdef __aarch64__
  if (problem.op == OpId::conv3d) return false;
#endif
  if (problem.inputs[0].dtype != DataType::bfloat16) return true;
  return problem.op == OpId::conv2d && shape.stride[1] == 1 && shape.stride[2] == 1;
}

/// That of the weight sums over images: it is cut by groups or output channels, and into sums of some images each.
void add_weights(const ConvCall& call, BackwardWriter& writer, std::int64_t images) {
  const ConvShape& shape = call.shape;
  const std::int64_t groups = part_length(shape.groups, call.parts, 1);
  const std::int64_t outs =
      shape.groups > 1 ? shape.out_channels : part_length(shape.out_channels, call.parts, channel_unit);
  for (std::int64_t n = 0; n < shape.batch; n += images) {
    for (std::int64_t g = 0; g < shape.groups; g += groups) {
      for (std::int64_t o = 0; o < shape.out_channels; o += outs) {
        writer.add_weight({n, std::min(images, shape.batch - n), g, std::min(groups, shape.groups - g), 0,
                           shape.in_channels, o, std::min(outs, shape.out_channels - o)},
                          n / images);
      }
    }
  }
}

/// The gradients of input and, if there is a second output, weight in the layouts that oneDNN likes best. The weight's
/// may be several, to be added.
Program gradients_program(const Problem& problem) {
  const ConvCall call = conv_call(forward_of(problem));
  const Dtypes dtypes = {call.in, problem.inputs[1].dtype, problem.inputs.back().dtype, problem.outputs[0].dtype,
                         problem.outputs.back().dtype};
  BackwardWriter writer(call, dtypes);
  add_inputs(call, writer);
  if (problem.outputs.size() > 1) add_weights(call, writer, images_at_once(call.shape));
  return writer.take();
}

constexpr KernelSpec gradients = {
    .prepare = [](const Problem& problem,
                  const PrepareContext&) { return prepare_program(problem, gradients_program); },
    .workspace_bytes =
        [](const Problem& problem, const DeviceProfile& profile) {
          return program_workspace(problem, profile, gradients_program);
        }};

}  // namespace

Verdict supports_conv_backward(const Problem& problem) {
  const DataType in = problem.inputs[0].dtype;
  const Verdict weight = is_same_dtype("input 1", problem.inputs[1].dtype, "the input's", in);
  if (!weight.supported) return weight;
  const Verdict gradient = is_same_dtype("the gradient", problem.inputs.back().dtype, "the input's", in);
  if (!gradient.supported) return gradient;
  for (const TensorSpec& output : problem.outputs) {
    if (output.dtype != in && output.dtype != DataType::float32) {
      return refuse_dtype("an output", output.dtype, "what the input has, or f32");
    }
  }
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  const Problem forward = forward_of(problem);
  if (const Verdict verdict = supports_modest_windows(forward); !verdict.supported) return verdict;
  const ConvShape shape = conv_shape(forward);
  if (const Verdict verdict = supports_padding(shape); !verdict.supported) return verdict;
  return supports_window_sums(shape.out_channels, shape.taps());
}

Stages conv_backward_stages(const Problem& problem) {
  Stages stages;
  std::vector<StageTensor> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs.push_back(input_of(problem, i));
  const StageTensor input = output_of(problem, 0), weight = output_of(problem, 1);
  const ConvShape shape = conv_shape(forward_of(problem));
  const std::int64_t images = has_right_weight_gradient(problem, shape) ? images_at_once(shape) : 0;
  const std::int64_t parts = images == 0 ? 0 : divide_up(shape.batch, images);
  Problem part = problem;
  if (images == 0) {
    part.outputs = {input.spec};
    stages.add(gradients, part, inputs, {input});
    stages.add(conv_weight_im2col, problem, inputs, {input, weight});
  } else if (parts <= 1) {
    part.outputs = {input.spec, weight.spec};
    stages.add(gradients, part, inputs, {input, weight});
  } else {
    const std::int64_t count = element_count(weight.spec), over_parts = 0;
    const StageTensor sums = stages.room(DataType::float32, {parts, count});
    const StageTensor to = weight.seen_as(make_spec(weight.spec.dtype, {count}));
    part.outputs = {input.spec, sums.spec};
    stages.add(gradients, part, inputs, {input, sums});
    const Attributes attributes = Attributes(OpId::reduce_sum).set_list("dim", {&over_parts, 1});
    const Problem sum = stage_problem(problem, attributes, {sums}, to);
    stages.add(reduction_for(sum), sum, {sums}, {to});
  }
  add_bias_gradient(problem, stages);
  return stages;
}

}  // namespace xpuruntime::cpu
