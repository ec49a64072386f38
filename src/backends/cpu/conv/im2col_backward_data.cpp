#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/columns.h"
#include "backends/cpu/conv/im2col_backward.h"
#include "backends/cpu/matmul/gemm.h"

// The gradient of the input: the transposed weight times the output's gradient gives columns, and each of their values
// is added where the input's was taken from.

namespace xpuruntime::cpu {
namespace {

/// The first position of a run along the last dim, and how many of its taps fall into the input.
struct Run {
  std::int64_t first = 0, count = 0;
};

/// Positions x of [begin, begin + n) with 0 <= x * stride + shift < extent.
Run inside(std::int64_t begin, std::int64_t n, std::int64_t stride, std::int64_t shift, std::int64_t extent) {
  const std::int64_t first = shift >= 0 ? 0 : divide_up(-shift, stride);
  const std::int64_t end = extent - shift <= 0 ? 0 : divide_up(extent - shift, stride);
  const std::int64_t low = std::max(begin, first), high = std::min(begin + n, end);
  return {low, std::max<std::int64_t>(high - low, 0)};
}

void add_strided(const float* from, std::int64_t count, std::int64_t stride, float* to) {
  if (stride == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
  } else {
    for (std::int64_t i = 0; i < count; ++i) to[i * stride] += from[i];
  }
}

/// Adds one tap's row of columns, for `count` outputs from `begin` on, to a plane of the input.
void spread_tap(const ConvShape& shape, const Extents& tap, std::int64_t begin, std::int64_t count, const float* column,
                float* plane) {
  Extents shift;
  for (std::size_t i = 0; i < 3; ++i) shift[i] = tap[i] * shape.dilation[i] - shape.padding[i];
  std::int64_t x = begin % shape.out[2], row = begin / shape.out[2];
  for (std::int64_t left = count; left > 0; x = 0, ++row) {
    const std::int64_t n = std::min(left, shape.out[2] - x);
    const std::int64_t z = row / shape.out[1] * shape.stride[0] + shift[0];
    const std::int64_t y = row % shape.out[1] * shape.stride[1] + shift[1];
    if (z >= 0 && z < shape.in[0] && y >= 0 && y < shape.in[1]) {
      const Run run = inside(x, n, shape.stride[2], shift[2], shape.in[2]);
      float* line = plane + (z * shape.in[1] + y) * shape.in[2];
      if (run.count > 0) {
        add_strided(column + run.first - x, run.count, shape.stride[2], line + run.first * shape.stride[2] + shift[2]);
      }
    }
    column += n;
    left -= n;
  }
}

class Im2colDataPlan final : public Plan {
 public:
  explicit Im2colDataPlan(const Problem& backward)
      : parts_(backward), weight_(backward.inputs[1].dtype), out_(backward.outputs[0].dtype) {
    const ConvShape& shape = parts_.shape;
    std::size_t bytes = 0;
    // The last tile and the last part may be smaller, and smaller products need not need less.
    for (const std::int64_t c : {parts_.channels, shape.in_channels % parts_.channels}) {
      for (const std::int64_t n : {parts_.tile, parts_.positions % parts_.tile}) {
        if (c * n > 0) bytes = std::max(bytes, gemm_scratch_bytes(c * shape.taps(), n, shape.out_channels));
      }
    }
    columns_ = round_up(parts_.channels * shape.taps() * parts_.tile, 16);
    planes_ = out_ == DataType::float32 ? 0 : round_up(parts_.channels * volume(shape.in), 16);
    scratch_ = round_up(static_cast<std::int64_t>(bytes), 64) / std::int64_t{sizeof(float)};
  }

  std::optional<std::uint64_t> workspace_bytes() const override {
    return static_cast<std::uint64_t>(parts_.threads * slot_floats()) * sizeof(float);
  }

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = parts_.shape;
    auto* slots = static_cast<float*>(arguments.workspace);
    run_in_slots(shape.batch * shape.groups * parts_.parts(), 1, parts_.threads,
                 [&](std::int64_t slot, std::int64_t i) {
                   write_part(arguments, i / parts_.parts(), i % parts_.parts(), slots + slot * slot_floats());
                 });
    return {};
  }

 private:
  std::int64_t slot_floats() const { return columns_ + planes_ + scratch_; }

  /// Some channels of one group of one image; `image` counts groups.
  void write_part(const RunArguments& arguments, std::int64_t image, std::int64_t part, float* slot) const {
    const ConvShape& shape = parts_.shape;
    const std::int64_t channels = parts_.part_channels(part), pixels = volume(shape.in);
    const std::int64_t at = (image * shape.in_channels + part * parts_.channels) * pixels;
    const bool direct = out_ == DataType::float32;
    float* planes = direct ? arguments.outputs[0]->as<float>() + at : slot + columns_;
    std::fill_n(planes, channels * pixels, 0.0f);
    for (std::int64_t t = 0; t < parts_.tiles(); ++t) add_tile(arguments, image, part, t, planes, slot);
    if (direct) return;
    const std::int64_t size = static_cast<std::int64_t>(size_of(out_));
    put_sums(planes, channels * pixels, 0.0f, out_, arguments.outputs[0]->as<std::byte>() + at * size);
  }

  void add_tile(const RunArguments& arguments, std::int64_t image, std::int64_t part, std::int64_t t, float* planes,
                float* slot) const {
    const ConvShape& shape = parts_.shape;
    const std::int64_t channels = parts_.part_channels(part), count = parts_.tile_positions(t);
    const std::int64_t begin = t * parts_.tile, taps = shape.taps();
    const std::int64_t first =
        image % shape.groups * shape.out_channels * shape.depth() + part * parts_.channels * taps;
    const std::byte* weight = arguments.inputs[1]->as<const std::byte>();
    const std::byte* gradient = arguments.inputs.back()->as<const std::byte>();
    const std::int64_t from = image * shape.out_channels * parts_.positions + begin;
    const TypedMatrixView a = {weight + first * static_cast<std::int64_t>(size_of(weight_)), weight_, 1, shape.depth()};
    const TypedMatrixView b = {gradient + from * static_cast<std::int64_t>(size_of(parts_.gradient)), parts_.gradient,
                               parts_.positions, 1};
    gemm(channels * taps, count, shape.out_channels, a, b, slot, count, false, slot + columns_ + planes_);
    const float* column = slot;
    for (std::int64_t c = 0; c < channels; ++c) {
      float* plane = planes + c * volume(shape.in);
      Extents tap;
      for (tap[0] = 0; tap[0] < shape.kernel[0]; ++tap[0]) {
        for (tap[1] = 0; tap[1] < shape.kernel[1]; ++tap[1]) {
          for (tap[2] = 0; tap[2] < shape.kernel[2]; ++tap[2], column += count) {
            spread_tap(shape, tap, begin, count, column, plane);
          }
        }
      }
    }
  }

  Im2colParts parts_;
  DataType weight_, out_;
  std::int64_t columns_ = 0, planes_ = 0, scratch_ = 0;
};

}  // namespace

std::uint64_t workspace_conv_data_im2col(const Problem& backward, const DeviceProfile&) {
  return *Im2colDataPlan(backward).workspace_bytes();
}

std::unique_ptr<const Plan> prepare_conv_data_im2col(const Problem& backward, const PrepareContext&) {
  return std::make_unique<Im2colDataPlan>(backward);
}

}  // namespace xpuruntime::cpu
