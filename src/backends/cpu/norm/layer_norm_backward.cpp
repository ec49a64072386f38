#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/layer_norm.h"

namespace xpuruntime::cpu {
namespace {

std::int64_t lines_of_floats(std::int64_t count) { return (count + 15) / 16 * 16; }

/// Rows are taken in blocks whose number depends on the shape alone: each sums up the parameters' gradients of its
/// own rows, few enough for f32, and the blocks' sums are added in their order.
struct BlockLayout {
  explicit BlockLayout(const Problem& problem) {
    const bool centred = problem.op == OpId::layer_norm;
    const TensorSpec& x = problem.inputs[0];
    const std::int64_t dims = centred ? problem.attributes.integer("normalized_rank") : 1;
    job = {x.dtype, centred, lines_along_last(x.shape, dims), problem.attributes.real("eps"), nullptr, nullptr};
    constexpr std::int64_t fewest_blocks = 64, least_elements = 16384, most_rows = 512;
    const std::int64_t rows = job.lines.outer, length = std::max<std::int64_t>(job.lines.length, 1);
    block_rows = std::max((rows + fewest_blocks - 1) / fewest_blocks, least_elements / length);
    block_rows = std::clamp<std::int64_t>(block_rows, 1, most_rows);
    blocks = (rows + block_rows - 1) / block_rows;
    parameters = static_cast<std::int64_t>(problem.inputs.size()) - 2;
    widens = parameters > 0 && problem.inputs[1].dtype != DataType::float32;
    step = lines_of_floats(job.lines.length);
  }

  std::int64_t weight_floats() const { return widens ? step : 0; }
  std::int64_t floats() const { return weight_floats() + blocks * parameters * step; }

  LayerNormJob job = {};
  std::int64_t block_rows = 1, blocks = 0, parameters = 0, step = 0;
  bool widens = false;
};

class LayerNormBackwardPlan final : public Plan {
 public:
  explicit LayerNormBackwardPlan(const Problem& problem) : layout_(problem), threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    auto* floats = static_cast<float*>(arguments.workspace);
    LayerNormGradient gradient = {layout_.job, arguments.inputs[0]->as<const std::byte>(),
                                  arguments.inputs.back()->as<const std::byte>(),
                                  arguments.outputs[0]->as<std::byte>()};
    if (layout_.parameters > 0) gradient.job.weight = weight_of(*arguments.inputs[1], floats);
    float* sums = floats + layout_.weight_floats();
    if (layout_.job.lines.length > 0) add_blocks(gradient, sums);
    for (std::int64_t i = 0; i < layout_.parameters; ++i) {
      const Tensor& out = *arguments.outputs[static_cast<std::size_t>(1 + i)];
      layer_norm_add_parts(sums + i * layout_.step, layout_.blocks, layout_.parameters * layout_.step,
                           layout_.job.lines.length, out.dtype(), out.as<std::byte>());
    }
    return {};
  }

 private:
  const float* weight_of(const Tensor& tensor, float* room) const {
    if (!layout_.widens) return tensor.as<const float>();
    widen_parameter(tensor.as<const std::byte>(), tensor.dtype(), layout_.job.lines.length, room);
    return room;
  }

  void add_blocks(const LayerNormGradient& gradient, float* sums) const {
    constexpr std::int64_t picoseconds = 300;  // about what an element takes
    const std::int64_t grain = lines_per_thread(layout_.job.lines.length * layout_.block_rows, picoseconds);
    parallel_for(layout_.blocks, grain, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        float* block = sums + b * layout_.parameters * layout_.step;
        layer_norm_gradient(
            gradient, b * layout_.block_rows, std::min((b + 1) * layout_.block_rows, layout_.job.lines.outer),
            layout_.parameters > 0 ? block : nullptr, layout_.parameters > 1 ? block + layout_.step : nullptr);
      }
    });
  }

  BlockLayout layout_;
  int threads_;
};

}  // namespace

std::uint64_t workspace_layer_norm_backward(const Problem& problem) {
  return static_cast<std::uint64_t>(BlockLayout(problem).floats()) * sizeof(float);
}

std::unique_ptr<const Plan> prepare_layer_norm_backward_simd(const Problem& problem) {
  return std::make_unique<LayerNormBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
