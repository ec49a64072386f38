#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/channels_last.h"
#include "backends/cpu/conv/columns.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/matmul/gemm.h"

// The convolution as a matrix product: a tile of outputs becomes a matrix of columns, which the weight multiplies. A
// pointwise convolution of f32 needs no columns, it multiplies the input itself.

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t column_slack = 16;

/// What a thread keeps for itself while it works on a tile.
struct SlotSizes {
  std::int64_t columns = 0, sums = 0, scratch = 0;  // floats
  std::int64_t all() const { return columns + sums + scratch; }
};

struct Im2colLayout {
  explicit Im2colLayout(const Problem& problem)
      : shape(conv_shape(problem)),
        threads(conv_threads(problem, shape)),
        operands(problem),
        in_dtype(problem.inputs[0].dtype),
        out_dtype(problem.outputs[0].dtype),
        in_place(shape.pointwise() && in_dtype == DataType::float32) {
    positions = volume(shape.out);
    constexpr std::int64_t column_floats = std::int64_t{1} << 18;
    tile = std::clamp<std::int64_t>(column_floats / std::max<std::int64_t>(shape.depth(), 1), 64, 1024);
    tile = std::min(tile, std::max<std::int64_t>(positions, 1));
    // Few positions and many channels: threads share the channels, and each makes the columns anew.
    channels = shape.out_channels;
    const std::int64_t tiles = shape.batch * shape.groups * divide_up(std::max<std::int64_t>(positions, 1), tile);
    if (threads > 1 && tiles < 2 * threads) {
      channels = round_up(divide_up(shape.out_channels, threads), 16);
    }
    channels = std::max<std::int64_t>(channels, 1);
    std::size_t bytes = 0;
    // The last tile and the last part may be smaller, and smaller products need not need less.
    for (const std::int64_t m : {std::min(channels, shape.out_channels), shape.out_channels % channels}) {
      for (const std::int64_t n : {tile, positions % tile}) {
        if (m > 0 && n > 0) bytes = std::max(bytes, gemm_scratch_bytes(m, n, shape.depth()));
      }
    }
    slot.columns = in_place ? 0 : round_up(shape.depth() * tile + column_slack, 16);
    slot.sums = out_dtype == DataType::float32 ? 0 : round_up(channels * tile, 16);
    slot.scratch = round_up(static_cast<std::int64_t>(bytes), 64) / std::int64_t{sizeof(float)};
  }

  ConvShape shape;
  int threads;
  ConvOperands operands;
  DataType in_dtype, out_dtype;
  bool in_place;
  std::int64_t positions = 0, tile = 1, channels = 1;
  SlotSizes slot;
};

class Im2colPlan final : public Plan {
 public:
  explicit Im2colPlan(const Problem& problem) : layout_(problem) {}

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = layout_.shape;
    if (shape.empty()) return {};
    Carver carver(arguments.workspace);
    ConvOperands::Floats floats = layout_.operands.carve(carver);
    float* slots = carver.floats(layout_.threads * layout_.slot.all());
    layout_.operands.fill(arguments, layout_.threads, floats);
    const std::int64_t tiles = divide_up(layout_.positions, layout_.tile);
    const std::int64_t parts = divide_up(shape.out_channels, layout_.channels);
    run_in_slots(shape.batch * shape.groups * tiles * parts, 1, layout_.threads,
                 [&](std::int64_t slot, std::int64_t i) {
                   const std::int64_t image = i / parts / tiles;  // group after group, image after image
                   multiply_tile(arguments, floats, slots + slot * layout_.slot.all(), image,
                                 i / parts % tiles * layout_.tile, i % parts * layout_.channels);
                 });
    return {};
  }

 private:
  MatrixView inputs_of(const RunArguments& arguments, std::int64_t image, std::int64_t begin, std::int64_t count,
                       float* columns) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t size = shape.in_channels * volume(shape.in);
    if (layout_.in_place) {
      return {arguments.inputs[0]->as<const float>() + image * size + begin, layout_.positions, 1};
    }
    const std::int64_t bytes = size * static_cast<std::int64_t>(size_of(layout_.in_dtype));
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    fill_columns(
        shape, {layout_.in_dtype, in + image * bytes, in + shape.batch * shape.groups * bytes, begin, count, columns});
    return {columns, count, 1};
  }

  void multiply_tile(const RunArguments& arguments, const ConvOperands::Floats& floats, float* slot, std::int64_t image,
                     std::int64_t begin, std::int64_t part) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t count = std::min(layout_.tile, layout_.positions - begin);
    const std::int64_t channels = std::min(layout_.channels, shape.out_channels - part);
    const std::int64_t first = image % shape.groups * shape.out_channels + part;
    const MatrixView inputs = inputs_of(arguments, image, begin, count, slot);
    const MatrixView weight{floats.weight + first * shape.depth(), shape.depth(), 1};
    const std::int64_t at = (image * shape.out_channels + part) * layout_.positions + begin;
    const bool direct = layout_.out_dtype == DataType::float32;
    float* sums = direct ? arguments.outputs[0]->as<float>() + at : slot + layout_.slot.columns;
    const std::int64_t row = direct ? layout_.positions : count;
    gemm(channels, count, shape.depth(), weight, inputs, sums, row, false,
         slot + layout_.slot.columns + layout_.slot.sums);
    if (direct && floats.bias == nullptr) return;
    const std::int64_t size = static_cast<std::int64_t>(size_of(layout_.out_dtype));
    std::byte* out = arguments.outputs[0]->as<std::byte>() + at * size;
    for (std::int64_t r = 0; r < channels; ++r) {
      const float bias = floats.bias == nullptr ? 0.0f : floats.bias[first + r];
      put_sums(sums + r * row, count, bias, layout_.out_dtype, out + r * layout_.positions * size);
    }
  }

  Im2colLayout layout_;
};

}  // namespace

Verdict supports_conv_im2col(const Problem& problem, const DeviceProfile&) {
  if (problem.direction == Direction::backward) return supports_conv_im2col_backward(problem);
  const Verdict verdict =
      is_conv_channels_last(problem) ? supports_conv_channels_last(problem) : supports_fast_conv(problem);
  if (!verdict.supported) return verdict;
  return supports_conv_columns(conv_shape(problem));
}

std::unique_ptr<const Plan> prepare_conv_im2col(const Problem& problem, const PrepareContext& context) {
  if (problem.direction == Direction::backward) return prepare_conv_im2col_backward(problem, context);
  if (is_conv_channels_last(problem)) return prepare_conv_channels_last(problem);
  return std::make_unique<Im2colPlan>(problem);
}

std::uint64_t workspace_conv_im2col(const Problem& problem, const DeviceProfile& profile) {
  if (problem.direction == Direction::backward) return workspace_conv_im2col_backward(problem, profile);
  if (is_conv_channels_last(problem)) return workspace_conv_channels_last(problem);
  const Im2colLayout layout(problem);
  Carver carver;
  static_cast<void>(layout.operands.carve(carver));
  carver.floats(layout.threads * layout.slot.all());
  return carver.used();
}

}  // namespace xpuruntime::cpu
