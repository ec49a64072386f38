#include <algorithm>
#include <cstring>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/channels_last.h"
#include "backends/cpu/conv/columns.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/conv/shape.h"
#include "backends/cpu/matmul/gemm.h"

namespace xpuruntime::cpu {
namespace {

/// Sizes in floats, whatever the dtype that lies there.
struct LastLayout {
  explicit LastLayout(const Problem& problem)
      : shape(conv_shape(problem)),
        threads(conv_threads(problem, shape)),
        operands(problem),
        in_dtype(problem.inputs[0].dtype),
        out_dtype(problem.outputs[0].dtype) {
    rows = shape.batch * volume(shape.out);
    constexpr std::int64_t window_floats = std::int64_t{1} << 17;
    tile = std::clamp<std::int64_t>(window_floats / std::max<std::int64_t>(shape.depth(), 1), 48, 768);
    tile = std::clamp<std::int64_t>(divide_up(rows, threads), 1, tile);
    windows = shape.pointwise() ? 0 : round_up(shape.depth() * tile, 16);
    sums = out_dtype == DataType::float32 ? 0 : round_up(shape.out_channels * tile, 16);
    std::size_t bytes = 0;
    for (const std::int64_t m : {tile, rows % tile}) {
      if (m > 0) bytes = std::max(bytes, gemm_scratch_bytes(m, shape.out_channels, shape.depth()));
    }
    scratch = round_up(static_cast<std::int64_t>(bytes), 64) / std::int64_t{sizeof(float)};
  }
  std::int64_t slot() const { return windows + sums + scratch; }

  ConvShape shape;
  int threads;
  ConvOperands operands;
  DataType in_dtype, out_dtype;
  std::int64_t rows = 0, tile = 1;  // pixels of all outputs, and of one product
  std::int64_t windows = 0, sums = 0, scratch = 0;
};

/// The window of one output pixel, pixel after pixel; padding is zeros, which are the same bits in all dtypes.
void copy_window(const ConvShape& s, const std::byte* in, std::int64_t row, std::int64_t bytes, std::byte* to) {
  const std::int64_t x = row % s.out[2], y = row / s.out[2] % s.out[1], z = row / (s.out[2] * s.out[1]) % s.out[0];
  const std::byte* image = in + row / volume(s.out) * volume(s.in) * bytes;
  for (std::int64_t a = 0; a < s.kernel[0]; ++a) {
    const std::int64_t from_z = z * s.stride[0] + a * s.dilation[0] - s.padding[0];
    for (std::int64_t b = 0; b < s.kernel[1]; ++b) {
      const std::int64_t from_y = y * s.stride[1] + b * s.dilation[1] - s.padding[1];
      const bool inside = from_z >= 0 && from_z < s.in[0] && from_y >= 0 && from_y < s.in[1];
      for (std::int64_t c = 0; c < s.kernel[2]; ++c, to += bytes) {
        const std::int64_t from_x = x * s.stride[2] + c * s.dilation[2] - s.padding[2];
        if (!inside || from_x < 0 || from_x >= s.in[2]) {
          std::memset(to, 0, static_cast<std::size_t>(bytes));
          continue;
        }
        std::memcpy(to, image + ((from_z * s.in[1] + from_y) * s.in[2] + from_x) * bytes,
                    static_cast<std::size_t>(bytes));
      }
    }
  }
}

class ChannelsLastPlan final : public Plan {
 public:
  explicit ChannelsLastPlan(const Problem& problem) : layout_(problem) {}

  Status run(const RunArguments& arguments) const override {
    if (layout_.shape.empty()) return {};
    Carver carver(arguments.workspace);
    ConvOperands::Floats floats = layout_.operands.carve(carver);
    float* slots = carver.floats(layout_.threads * layout_.slot());
    layout_.operands.fill(arguments, layout_.threads, floats);
    run_in_slots(divide_up(layout_.rows, layout_.tile), 1, layout_.threads, [&](std::int64_t slot, std::int64_t i) {
      multiply(arguments, floats, slots + slot * layout_.slot(), i * layout_.tile);
    });
    return {};
  }

 private:
  TypedMatrixView windows_of(const RunArguments& arguments, std::int64_t first, std::int64_t count, float* room) const {
    const ConvShape& shape = layout_.shape;
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    const std::int64_t bytes = shape.in_channels * static_cast<std::int64_t>(size_of(layout_.in_dtype));
    if (shape.pointwise()) return {in + first * bytes, layout_.in_dtype, shape.depth(), 1};
    auto* to = reinterpret_cast<std::byte*>(room);
    for (std::int64_t i = 0; i < count; ++i) copy_window(shape, in, first + i, bytes, to + i * bytes * shape.taps());
    return {to, layout_.in_dtype, shape.depth(), 1};
  }

  void multiply(const RunArguments& arguments, const ConvOperands::Floats& floats, float* slot,
                std::int64_t first) const {
    const std::int64_t count = std::min(layout_.tile, layout_.rows - first), channels = layout_.shape.out_channels;
    const std::int64_t depth = layout_.shape.depth();
    const bool direct = layout_.out_dtype == DataType::float32;
    float* sums = direct ? arguments.outputs[0]->as<float>() + first * channels : slot + layout_.windows;
    const TypedMatrixView weight{floats.weight, DataType::float32, 1, depth};
    gemm(count, channels, depth, windows_of(arguments, first, count, slot), weight, sums, channels, false,
         slot + layout_.windows + layout_.sums);
    for (std::int64_t r = 0; floats.bias != nullptr && r < count; ++r) {
      for (std::int64_t c = 0; c < channels; ++c) sums[r * channels + c] += floats.bias[c];
    }
    if (direct) return;
    std::byte* out = arguments.outputs[0]->as<std::byte>();
    const std::int64_t at = first * channels * static_cast<std::int64_t>(size_of(layout_.out_dtype));
    put_sums(sums, count * channels, 0, layout_.out_dtype, out + at);
  }

  LastLayout layout_;
};

}  // namespace

bool is_conv_channels_last(const Problem& problem) {
  const TensorSpec* const specs[] = {&problem.inputs[0], &problem.inputs[1], &problem.outputs[0]};
  return std::all_of(std::begin(specs), std::end(specs), [](const auto* spec) { return has_channels_last(*spec); }) &&
         std::any_of(std::begin(specs), std::end(specs), [](const auto* spec) { return !spec->contiguous; });
}

Verdict supports_conv_channels_last(const Problem& problem) {
  if (const Verdict bias = is_contiguous(problem, 2); !bias.supported) return bias;
  if (problem.attributes.integer("groups") != 1) return Verdict::no("several groups, and the channels are last");
  return supports_modest_windows(problem);
}

std::unique_ptr<const Plan> prepare_conv_channels_last(const Problem& problem) {
  return std::make_unique<ChannelsLastPlan>(problem);
}

std::uint64_t workspace_conv_channels_last(const Problem& problem) {
  const LastLayout layout(problem);
  Carver carver;
  static_cast<void>(layout.operands.carve(carver));
  carver.floats(layout.threads * layout.slot());
  return carver.used();
}

}  // namespace xpuruntime::cpu
