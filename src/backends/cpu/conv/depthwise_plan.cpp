#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/depthwise.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/conv/phases.h"

// One input channel a group: each channel is copied into phases, and its outputs are summed while it is in the cache.

namespace xpuruntime::cpu {
namespace {

struct DepthwiseLayout {
  explicit DepthwiseLayout(const Problem& problem)
      : shape(conv_shape(problem)), threads(conv_threads(problem, shape)), phases(shape), operands(problem) {}

  ConvShape shape;
  int threads;
  Phases phases;
  ConvOperands operands;
};

class DepthwisePlan final : public Plan {
 public:
  explicit DepthwisePlan(const Problem& problem)
      : layout_(problem),
        offsets_(layout_.phases.tap_offsets()),
        in_dtype_(problem.inputs[0].dtype),
        out_dtype_(problem.outputs[0].dtype) {}

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = layout_.shape;
    if (shape.empty()) return {};
    Carver carver(arguments.workspace);
    ConvOperands::Floats floats = layout_.operands.carve(carver);
    float* copies = carver.floats(layout_.threads * layout_.phases.channel_size);
    layout_.operands.fill(arguments, layout_.threads, floats);
    const std::int64_t planes = shape.batch * shape.groups;
    const std::int64_t step = std::clamp<std::int64_t>(planes / (8 * layout_.threads), 1, 64);
    run_in_slots(planes, step, layout_.threads, [&](std::int64_t slot, std::int64_t plane) {
      run_channel(arguments, floats, plane, copies + slot * layout_.phases.channel_size);
    });
    return {};
  }

 private:
  void run_channel(const RunArguments& arguments, const ConvOperands::Floats& floats, std::int64_t plane,
                   float* copy) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t in_size = volume(shape.in) * static_cast<std::int64_t>(size_of(in_dtype_));
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    fill_phases(layout_.phases, in_dtype_, in + plane * in_size, in + shape.batch * shape.groups * in_size, copy);
    for (std::int64_t i = 0; i < shape.out_channels; ++i) {
      for (std::int64_t z = 0; z < shape.out[0]; ++z) run_slice(arguments, floats, plane, i, z, copy);
    }
  }

  void run_slice(const RunArguments& arguments, const ConvOperands::Floats& floats, std::int64_t plane, std::int64_t i,
                 std::int64_t z, const float* copy) const {
    const ConvShape& shape = layout_.shape;
    const auto& axes = layout_.phases.axes;
    const std::int64_t channel = plane % shape.groups * shape.out_channels + i;
    const std::int64_t slice = (plane * shape.out_channels + i) * shape.out[0] + z;
    const std::int64_t size = static_cast<std::int64_t>(size_of(out_dtype_));
    DepthwisePlane work;
    work.inputs = copy + z * axes[1].extent * axes[2].extent;
    work.row = axes[2].extent;
    work.offsets = offsets_.data();
    work.weights = floats.weight + channel * shape.taps();
    work.taps = shape.taps();
    work.bias = floats.bias == nullptr ? 0.0f : floats.bias[channel];
    work.height = shape.out[1];
    work.width = shape.out[2];
    work.out = arguments.outputs[0]->as<std::byte>() + slice * shape.out[1] * shape.out[2] * size;
    run_depthwise_plane(work, out_dtype_);
  }

  DepthwiseLayout layout_;
  std::vector<std::int64_t> offsets_;
  DataType in_dtype_, out_dtype_;
};

}  // namespace

Verdict supports_conv_depthwise(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_fast_conv(problem); !verdict.supported) return verdict;
  const ConvShape shape = conv_shape(problem);
  if (shape.in_channels != 1) {
    return Verdict::no("a group has " + std::to_string(shape.in_channels) + " input channels, and depthwise has 1");
  }
  return supports_phases(shape);
}

std::unique_ptr<const Plan> prepare_conv_depthwise(const Problem& problem, const PrepareContext&) {
  return std::make_unique<DepthwisePlan>(problem);
}

std::uint64_t workspace_conv_depthwise(const Problem& problem, const DeviceProfile&) {
  const DepthwiseLayout layout(problem);
  Carver carver;
  static_cast<void>(layout.operands.carve(carver));
  carver.floats(layout.threads * layout.phases.channel_size);
  return carver.used();
}

}  // namespace xpuruntime::cpu
