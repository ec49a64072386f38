#include <algorithm>
#include <cstring>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/base/windows.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/shape.h"
#include "backends/cpu/matmul/int8_task.h"

// The convolution of 8-bit integers as a matrix product: a tile of outputs becomes a matrix of columns, which the
// weight multiplies. A pointwise convolution multiplies the input itself.

namespace xpuruntime::cpu {
namespace {

using Bytes = const std::uint8_t*;

struct Int8Layout {
  explicit Int8Layout(const Problem& problem) : shape(conv_shape(problem)), threads(conv_threads(problem, shape)) {
    positions = volume(shape.out);
    constexpr std::int64_t column_bytes = std::int64_t{1} << 18, lanes = int8_lane_group;
    tile = shape.pointwise() ? 4 * lanes : column_bytes / std::max<std::int64_t>(shape.depth(), 1) / lanes * lanes;
    tile = std::min(std::clamp(tile, lanes, 8 * lanes), std::max<std::int64_t>(positions, 1));
    // Few positions and many channels: threads share the channels, and each makes the columns anew.
    channels = shape.out_channels;
    const std::int64_t tiles = shape.batch * shape.groups * divide_up(std::max<std::int64_t>(positions, 1), tile);
    if (threads > 1 && tiles < 2 * threads) channels = round_up(divide_up(shape.out_channels, threads), 16);
    channels = std::max<std::int64_t>(channels, 1);
    column_words = shape.pointwise() ? 0 : round_up(divide_up(shape.depth() * tile, 4), 16);
    slot_words = column_words + round_up(int8_buffer_words(channels, tile), 16);
  }

  ConvShape shape;
  int threads;
  std::int64_t positions = 0, tile = 1, channels = 1;
  std::int64_t column_words = 0, slot_words = 0;  // of 32 bits
};

/// One row of outputs, `count` of them from `begin` on, of one tap: what lies under it, zeros outside.
void fill_line(const ConvShape& shape, Bytes line, std::int64_t tap, std::int64_t begin, std::int64_t count,
               std::uint8_t* to) {
  const std::int64_t stride = shape.stride[2], from = tap * shape.dilation[2] - shape.padding[2];
  const auto first_at_least = [&](std::int64_t edge) {  // the first output whose input is not before the edge
    return std::clamp(edge <= from ? 0 : (edge - from + stride - 1) / stride, begin, begin + count);
  };
  const std::int64_t first = line == nullptr ? begin + count : first_at_least(0);
  const std::int64_t last = line == nullptr ? begin + count : first_at_least(shape.in[2]);
  std::memset(to, 0, static_cast<std::size_t>(first - begin));
  if (stride == 1 && last > first) {
    std::memcpy(to + first - begin, line + from + first, static_cast<std::size_t>(last - first));
  } else {
    for (std::int64_t x = first; x < last; ++x) to[x - begin] = line[from + x * stride];
  }
  std::memset(to + last - begin, 0, static_cast<std::size_t>(begin + count - last));
}

/// Outputs from number `begin` on of one tap of one channel.
void fill_tap(const ConvShape& shape, Bytes channel, const Extents& tap, std::int64_t begin, std::int64_t count,
              std::uint8_t* to) {
  const std::int64_t width = shape.out[2];
  for (std::int64_t at = begin; at < begin + count;) {
    const std::int64_t x = at % width, n = std::min(width - x, begin + count - at);
    const std::int64_t line = at / width;
    Extents from = {line / shape.out[1], line % shape.out[1], 0};
    bool inside = true;
    for (std::size_t d = 0; d < 2; ++d) {
      from[d] = from[d] * shape.stride[d] + tap[d] * shape.dilation[d] - shape.padding[d];
      inside = inside && from[d] >= 0 && from[d] < shape.in[d];
    }
    fill_line(shape, inside ? channel + (from[0] * shape.in[1] + from[1]) * shape.in[2] : nullptr, tap[2], x, n,
              to + at - begin);
    at += n;
  }
}

class Int8ConvPlan final : public Plan {
 public:
  Int8ConvPlan(const Problem& problem, bool quads) : layout_(problem), quads_(quads) {
    input_is_signed_ = problem.inputs[0].dtype == DataType::int8;
    weight_is_signed_ = problem.inputs[1].dtype == DataType::int8;
  }

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = layout_.shape;
    if (shape.empty()) return {};
    const std::int64_t tiles = divide_up(layout_.positions, layout_.tile);
    const std::int64_t parts = divide_up(shape.out_channels, layout_.channels);
    auto* words = static_cast<std::int32_t*>(arguments.workspace);
    run_in_slots(shape.batch * shape.groups * tiles * parts, 1, layout_.threads,
                 [&](std::int64_t slot, std::int64_t i) {
                   multiply_tile(arguments, words + slot * layout_.slot_words, i / parts / tiles,
                                 i / parts % tiles * layout_.tile, i % parts * layout_.channels);
                 });
    return {};
  }

 private:
  Int8Operand columns_of(const RunArguments& arguments, std::int64_t image, std::int64_t begin, std::int64_t count,
                         std::int32_t* words) const {
    const ConvShape& shape = layout_.shape;
    Bytes in = arguments.inputs[0]->as<const std::uint8_t>() + image * shape.in_channels * volume(shape.in);
    if (shape.pointwise()) return {in + begin, input_is_signed_, 1, layout_.positions};
    auto* columns = reinterpret_cast<std::uint8_t*>(words);
    std::uint8_t* to = columns;
    for (std::int64_t channel = 0; channel < shape.in_channels; ++channel) {
      for_each_position(shape.kernel, [&](const Extents& tap) {
        fill_tap(shape, in + channel * volume(shape.in), tap, begin, count, to);
        to += count;
      });
    }
    return {columns, input_is_signed_, 1, count};
  }

  /// `image` counts groups of images; `part` is the first of its channels.
  void multiply_tile(const RunArguments& arguments, std::int32_t* words, std::int64_t image, std::int64_t begin,
                     std::int64_t part) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t first = image % shape.groups * shape.out_channels + part;
    Int8Task task;
    task.row_count = std::min(layout_.channels, shape.out_channels - part);
    task.lane_count = std::min(layout_.tile, layout_.positions - begin);
    task.k = shape.depth();
    task.rows = {arguments.inputs[1]->as<const std::uint8_t>() + first * shape.depth(), weight_is_signed_,
                 shape.depth(), 1};
    task.lanes = columns_of(arguments, image, begin, task.lane_count, words);
    task.out =
        arguments.outputs[0]->as<std::int32_t>() + (image * shape.out_channels + part) * layout_.positions + begin;
    task.out_row = layout_.positions;
    task.out_lane = 1;
    if (arguments.inputs.size() > 2) task.row_bias = arguments.inputs[2]->as<const std::int32_t>() + first;
    task.quads = quads_;
    task.buffer = words + layout_.column_words;
    run_int8(task);
  }

  Int8Layout layout_;
  bool quads_;
  bool input_is_signed_ = true, weight_is_signed_ = true;
};

}  // namespace

Verdict supports_conv_int8(const Problem& problem, const DeviceProfile&) {
  if (problem.inputs.size() > 2 && problem.inputs[2].dtype != DataType::int32) {
    return Verdict::no("the bias is " + std::string(to_string(problem.inputs[2].dtype)) + ", and it takes i32");
  }
  if (const Verdict verdict = supports_fast_conv(problem); !verdict.supported) return verdict;
  return supports_conv_columns(conv_shape(problem));
}

std::uint64_t workspace_conv_int8(const Problem& problem, const DeviceProfile&) {
  const Int8Layout layout(problem);
  return static_cast<std::uint64_t>(layout.threads * layout.slot_words) * sizeof(std::int32_t);
}

std::unique_ptr<const Plan> prepare_conv_int8(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<Int8ConvPlan>(problem, has_int8_quads(context.profile));
}

}  // namespace xpuruntime::cpu
