#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/conv/phases.h"
#include "backends/cpu/conv/winograd.h"

// 3x3 filters with stride 1 by Winograd's minimal filtering: a tile of 4x4 outputs takes 36 products a channel instead
// of 144, at the price of transforms. The weights are transformed in every run, unless they are known not to change.

namespace xpuruntime::cpu {
namespace {

/// Tiles of 2x2 where those of 4x4 hang over the edge so much that they save nothing.
int outputs_of(const ConvShape& shape) {
  const auto products = [&](std::int64_t outputs) {
    return divide_up(shape.out[1], outputs) * divide_up(shape.out[2], outputs) * (outputs + 2) * (outputs + 2);
  };
  return products(2) <= products(4) ? 2 : 4;
}

/// The convolution whose taps are the values under a tile and whose outputs are the tiles.
ConvShape tiled(const ConvShape& shape, std::int64_t outputs) {
  ConvShape tiles = shape;
  tiles.kernel = {1, outputs + 2, outputs + 2};
  tiles.stride = {1, outputs, outputs};
  tiles.out = {1, divide_up(shape.out[1], outputs), divide_up(shape.out[2], outputs)};
  return tiles;
}

struct WinogradLayout {
  explicit WinogradLayout(const Problem& problem)
      : shape(conv_shape(problem)),
        threads(conv_threads(problem, shape)),
        outputs(outputs_of(shape)),
        values((outputs + 2) * (outputs + 2)),
        phases(tiled(shape, outputs)),
        operands(problem) {
    constexpr std::int64_t copy_floats = std::int64_t{1} << 20, scratch_floats = std::int64_t{3} << 17;
    const std::int64_t image = std::max<std::int64_t>(shape.in_channels * phases.channel_size, 1);
    images = std::clamp<std::int64_t>(copy_floats / image, 1, std::max<std::int64_t>(shape.batch, 1));
    const std::int64_t unit = values * (shape.in_channels + shape.out_channels) * winograd_unit;
    const std::int64_t most = winograd_most_tiles / winograd_unit;
    const std::int64_t units_at_once =
        std::clamp<std::int64_t>(scratch_floats / std::max<std::int64_t>(unit, 1), 1, most);
    room = units_at_once * winograd_unit;
    out_row = phases.axes[2].extent - 1;
    tiles = (phases.axes[1].extent - 2) * phases.axes[2].extent + out_row;
    units = divide_up(tiles, winograd_unit);
    // An even share for each thread; an element's sums do not depend on its block.
    blocks = std::min(units, round_up(divide_up(units, units_at_once), threads));
  }

  ConvShape shape;
  int threads;
  int outputs;
  std::int64_t values;
  Phases phases;
  ConvOperands operands;
  std::int64_t images = 1;  // copied at a time
  std::int64_t room = 0, out_row = 0, tiles = 0, units = 0, blocks = 0;
};

struct WinogradMemory {
  ConvOperands::Floats floats;
  float* weights;
  float* copy;
  float* scratch;
  std::int64_t in_scratch, slot_size;

  WinogradMemory(const WinogradLayout& layout, Carver& carver) : floats(layout.operands.carve(carver)) {
    const ConvShape& shape = layout.shape;
    weights = carver.floats(layout.values * shape.out_channels * shape.in_channels);
    copy = carver.floats(layout.images * shape.in_channels * layout.phases.channel_size);
    in_scratch = layout.values * shape.in_channels * layout.room;
    slot_size = in_scratch + layout.values * shape.out_channels * layout.room;
    scratch = carver.floats(layout.threads * slot_size);
  }
};

class WinogradPlan final : public Plan {
 public:
  explicit WinogradPlan(const Problem& problem)
      : layout_(problem),
        offsets_(layout_.phases.tap_offsets()),
        in_dtype_(problem.inputs[0].dtype),
        out_dtype_(problem.outputs[0].dtype) {
    for (std::int64_t c = 0; c < layout_.shape.in_channels; ++c) {
      row_offsets_.push_back(static_cast<std::int32_t>(c * layout_.room));
    }
  }

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = layout_.shape;
    if (shape.empty()) return {};
    Carver carver(arguments.workspace);
    WinogradMemory memory(layout_, carver);
    layout_.operands.fill(arguments, layout_.threads, memory.floats);
    if (held_.data() != nullptr) {
      memory.weights = held_.as<float>();
    } else {
      transform_weights(memory.floats.weight, memory.weights);
    }
    for (std::int64_t n = 0; n < shape.batch; n += layout_.images) {
      const std::int64_t images = std::min(layout_.images, shape.batch - n);
      copy_images(arguments, memory, n, images);
      run_in_slots(images * layout_.blocks, 1, layout_.threads, [&](std::int64_t slot, std::int64_t i) {
        run_block(arguments, memory, slot, n, i / layout_.blocks, i % layout_.blocks);
      });
    }
    return {};
  }

  std::unique_ptr<const Plan> with_constants(std::span<const Tensor* const> constants) const override {
    const ConvShape& shape = layout_.shape;
    const Tensor* weight = constants[1];
    if (weight == nullptr || weight->dtype() != DataType::float32 || !weight->contiguous() || shape.empty()) {
      return nullptr;
    }
    auto plan = std::make_unique<WinogradPlan>(*this);
    plan->held_ = Tensor::empty(DataType::float32, {layout_.values * shape.out_channels * shape.in_channels});
    transform_weights(weight->as<const float>(), plan->held_.as<float>());
    return plan;
  }

  std::string token() const override { return layout_.outputs == 2 ? "tile=2x2" : "tile=4x4"; }

 private:
  void transform_weights(const float* from, float* to) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t grain = std::max<std::int64_t>(1, 4096 / std::max<std::int64_t>(shape.in_channels, 1));
    parallel_for(shape.out_channels, grain, layout_.threads, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        run_winograd_weights({layout_.outputs, from + i * shape.in_channels * 9, shape.in_channels,
                              to + i * shape.in_channels, shape.out_channels * shape.in_channels});
      }
    });
  }

  void copy_images(const RunArguments& arguments, const WinogradMemory& memory, std::int64_t n,
                   std::int64_t images) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t plane = volume(shape.in) * static_cast<std::int64_t>(size_of(in_dtype_));
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    const std::byte* end = in + shape.batch * shape.in_channels * plane;
    const std::int64_t size = layout_.phases.channel_size, grain = std::max<std::int64_t>(1, 16384 / size);
    parallel_for(images * shape.in_channels, grain, layout_.threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        fill_phases(layout_.phases, in_dtype_, in + (n * shape.in_channels + i) * plane, end, memory.copy + i * size);
      }
    });
  }

  void run_block(const RunArguments& arguments, const WinogradMemory& memory, std::int64_t slot, std::int64_t n,
                 std::int64_t image, std::int64_t index) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t out_image = shape.out_channels * volume(shape.out);
    WinogradBlock block;
    block.outputs = layout_.outputs;
    block.inputs = memory.copy + image * shape.in_channels * layout_.phases.channel_size;
    block.channel_size = layout_.phases.channel_size;
    block.offsets = offsets_.data();
    block.in_channels = shape.in_channels;
    block.out_channels = shape.out_channels;
    block.weights = memory.weights;
    block.row_offsets = row_offsets_.data();
    block.bias = memory.floats.bias;
    block.begin = index * layout_.units / layout_.blocks * winograd_unit;
    block.end = std::min(layout_.tiles, (index + 1) * layout_.units / layout_.blocks * winograd_unit);
    block.room = layout_.room;
    block.in_scratch = memory.scratch + slot * memory.slot_size;
    block.out_scratch = block.in_scratch + memory.in_scratch;
    block.row = layout_.phases.axes[2].extent;
    block.out_row = layout_.out_row;
    block.out = arguments.outputs[0]->as<std::byte>() +
                (n + image) * out_image * static_cast<std::int64_t>(size_of(out_dtype_));
    block.height = shape.out[1];
    block.width = shape.out[2];
    run_winograd_block(block, out_dtype_);
  }

  WinogradLayout layout_;
  std::vector<std::int64_t> offsets_;
  std::vector<std::int32_t> row_offsets_;
  DataType in_dtype_, out_dtype_;
  Tensor held_ = {};  // the transformed weights, if they are constants
};

}  // namespace

Verdict supports_conv_winograd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_fast_conv(problem); !verdict.supported) return verdict;
  const ConvShape shape = conv_shape(problem);
  if (problem.op != OpId::conv2d || shape.kernel != Extents{1, 3, 3}) return Verdict::no("the kernel is not 3x3");
  if (shape.stride != Extents{1, 1, 1}) return Verdict::no("the stride is not 1");
  if (shape.dilation != Extents{1, 1, 1}) return Verdict::no("the kernel is dilated");
  if (shape.groups != 1) return Verdict::no("there are " + std::to_string(shape.groups) + " groups");
  if (problem.limits.deterministic) {
    return Verdict::no("its sums mix neighbouring windows: a NaN spreads over its tile, and errors are larger");
  }
  return supports_phases(tiled(shape, outputs_of(shape)));
}

std::unique_ptr<const Plan> prepare_conv_winograd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<WinogradPlan>(problem);
}

std::uint64_t workspace_conv_winograd(const Problem& problem, const DeviceProfile&) {
  const WinogradLayout layout(problem);
  Carver carver;
  const WinogradMemory memory(layout, carver);
  return carver.used();
}

}  // namespace xpuruntime::cpu
