#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/conv/direct.h"
#include "backends/cpu/conv/kernels.h"
#include "backends/cpu/conv/operands.h"
#include "backends/cpu/conv/phases.h"

// A convolution without a matrix of columns: the input is copied once into phases, and sums of up to eight channels at
// up to three vectors of positions are held in registers while all taps of all input channels go by.

namespace xpuruntime::cpu {
namespace {

/// All that the plan knows before it has seen memory.
struct DirectLayout {
  explicit DirectLayout(const Problem& problem)
      : shape(conv_shape(problem)),
        threads(conv_threads(problem, shape)),
        phases(shape),
        in_dtype(problem.inputs[0].dtype),
        out_dtype(problem.outputs[0].dtype),
        operands(problem) {
    copied = !shape.pointwise();
    const std::int64_t image = shape.groups * shape.in_channels * phases.channel_size;
    constexpr std::int64_t chunk_floats = std::int64_t{1} << 20;  // about what the second caches hold
    images = std::max<std::int64_t>(shape.batch, 1);
    if (copied) images = std::clamp<std::int64_t>(chunk_floats / std::max<std::int64_t>(image, 1), 1, images);
    set_positions();
  }

  // A copy without gaps between rows is one long row.
  void set_positions() {
    const auto& [z, y, x] = phases.axes;
    const bool flat = y.extent == shape.out[1] && x.extent == shape.out[2];
    slices = flat ? 1 : shape.out[0];
    out_row = flat ? volume(shape.out) : shape.out[2];
    row = flat ? out_row : x.extent;
    positions = flat ? out_row : (shape.out[1] - 1) * row + out_row;
    constexpr std::int64_t task_products = 1 << 20;
    const std::int64_t tile_products =
        direct_tile * std::max<std::int64_t>(shape.depth(), 1) * std::min(shape.out_channels, direct_channels);
    block = direct_tile * divide_up(task_products, std::max<std::int64_t>(tile_products, 1));
  }

  ConvShape shape;
  int threads;
  Phases phases;
  DataType in_dtype, out_dtype;
  ConvOperands operands;
  bool copied = true;
  std::int64_t images = 1;  // copied at a time
  std::int64_t slices = 1, row = 1, out_row = 1, positions = 1, block = direct_tile;
};

/// Products that are summed at once: those of whole channels, unless a channel has too many for one f32 sum.
std::int64_t copied_step(std::int64_t taps) { return taps > 512 ? 512 : round_up(taps == 1 ? 160 : 512, taps); }

/// What one run works on.
struct DirectMemory {
  ConvOperands::Floats floats;
  float* copy = nullptr;

  DirectMemory(const DirectLayout& layout, Carver& carver) : floats(layout.operands.carve(carver)) {
    const ConvShape& shape = layout.shape;
    if (layout.copied) {
      copy = carver.floats(layout.images * shape.groups * shape.in_channels * layout.phases.channel_size);
    }
  }
};

class DirectPlan final : public Plan {
 public:
  explicit DirectPlan(const Problem& problem) : layout_(problem) {
    const ConvShape& shape = layout_.shape;
    const std::int64_t channel = layout_.copied ? layout_.phases.channel_size : direct_tile;
    const std::vector<std::int64_t> taps = layout_.phases.tap_offsets();
    for (std::int64_t c = 0; c < (layout_.copied ? shape.in_channels : panel_depth); ++c) {
      for (const std::int64_t tap : taps) offsets_.push_back(static_cast<std::int32_t>(c * channel + tap));
    }
  }

  Status run(const RunArguments& arguments) const override {
    const ConvShape& shape = layout_.shape;
    if (shape.empty()) return {};
    Carver carver(arguments.workspace);
    DirectMemory memory(layout_, carver);
    layout_.operands.fill(arguments, layout_.threads, memory.floats);
    for (std::int64_t n = 0; n < shape.batch; n += layout_.images) {
      const std::int64_t images = std::min(layout_.images, shape.batch - n);
      if (layout_.copied) copy_images(arguments, memory, n, images);
      sum_images(arguments, memory, n, images);
    }
    return {};
  }

 private:
  void copy_images(const RunArguments& arguments, const DirectMemory& memory, std::int64_t n,
                   std::int64_t images) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t size = static_cast<std::int64_t>(size_of(layout_.in_dtype));
    const std::int64_t channels = shape.groups * shape.in_channels, plane = volume(shape.in) * size;
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    const std::byte* end = in + shape.batch * channels * plane;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / layout_.phases.channel_size);
    parallel_for(images * channels, grain, layout_.threads, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        fill_phases(layout_.phases, layout_.in_dtype, in + (n * channels + i) * plane, end,
                    memory.copy + i * layout_.phases.channel_size);
      }
    });
  }

  // Neighbouring tasks share weights.
  void sum_images(const RunArguments& arguments, const DirectMemory& memory, std::int64_t n,
                  std::int64_t images) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t blocks = divide_up(layout_.positions, layout_.block);
    const std::int64_t chunks = divide_up(shape.out_channels, direct_channels);
    const std::int64_t per_chunk = images * layout_.slices * blocks;
    parallel_tasks(shape.groups * chunks * per_chunk, layout_.threads, [&](std::int64_t i) {
      const std::int64_t chunk = i / per_chunk % chunks, group = i / per_chunk / chunks;
      const std::int64_t block = i % blocks, slice = i % per_chunk / blocks % layout_.slices;
      const std::int64_t image = i % per_chunk / blocks / layout_.slices;
      sum_block(arguments, memory, n, {image, group, slice, chunk * direct_channels, block * layout_.block});
    });
  }

  struct Task {
    std::int64_t image, group, slice, channel, position;
  };

  void sum_block(const RunArguments& arguments, const DirectMemory& memory, std::int64_t n, const Task& task) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t channel = task.group * shape.out_channels + task.channel;
    DirectBlock block;
    block.weights = memory.floats.weight + channel * shape.depth();
    block.bias = memory.floats.bias == nullptr ? nullptr : memory.floats.bias + channel;
    set_inputs(arguments, memory, n, task, block);
    block.offsets = offsets_.data();
    block.depth = shape.depth();
    // Inputs of about 32 KiB a step: neighbouring taps share most of theirs.
    block.depth_step = layout_.copied ? copied_step(shape.taps()) : panel_depth;
    block.channels = std::min(direct_channels, shape.out_channels - task.channel);
    block.begin = task.position;
    block.end = std::min(layout_.positions, task.position + layout_.block);
    block.row = layout_.row;
    block.out_row = layout_.out_row;
    block.out_channel = volume(shape.out);
    const std::int64_t plane = (n + task.image) * shape.groups * shape.out_channels + channel;
    const std::int64_t element = plane * block.out_channel + task.slice * shape.out[1] * shape.out[2];
    block.out = arguments.outputs[0]->as<std::byte>() + element * static_cast<std::int64_t>(size_of(layout_.out_dtype));
    run_direct_block(block, layout_.out_dtype);
  }

  void set_inputs(const RunArguments& arguments, const DirectMemory& memory, std::int64_t n, const Task& task,
                  DirectBlock& block) const {
    const ConvShape& shape = layout_.shape;
    const std::int64_t image = layout_.copied ? task.image : n + task.image;
    const std::int64_t channel = (image * shape.groups + task.group) * shape.in_channels;
    if (layout_.copied) {
      const std::int64_t plane = layout_.phases.axes[1].extent * layout_.phases.axes[2].extent;
      block.inputs = memory.copy + channel * layout_.phases.channel_size + task.slice * plane;
      return;
    }
    const std::int64_t size = static_cast<std::int64_t>(size_of(layout_.in_dtype)), plane = volume(shape.in) * size;
    const std::byte* in = arguments.inputs[0]->as<const std::byte>();
    block.panel = {layout_.in_dtype, in + channel * plane, in + shape.batch * shape.groups * shape.in_channels * plane,
                   volume(shape.in)};
  }

  DirectLayout layout_;
  std::vector<std::int32_t> offsets_;
};

}  // namespace

Verdict supports_conv_direct(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_fast_conv(problem); !verdict.supported) return verdict;
  return supports_phases(conv_shape(problem));
}

std::unique_ptr<const Plan> prepare_conv_direct(const Problem& problem, const PrepareContext&) {
  return std::make_unique<DirectPlan>(problem);
}

std::uint64_t workspace_conv_direct(const Problem& problem, const DeviceProfile&) {
  const DirectLayout layout(problem);
  Carver carver;
  const DirectMemory memory(layout, carver);
  return carver.used();
}

}  // namespace xpuruntime::cpu
