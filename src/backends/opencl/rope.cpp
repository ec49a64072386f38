#include <algorithm>
#include <span>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/launch.h"

namespace xpuruntime::opencl {
namespace {

/// The same struct stands in kernels/elementwise.cl.
struct Rope {
  Index heads = {};
  std::int64_t size = 0;
  std::int64_t pairs = 0;
  std::int64_t a_step = 1;
  std::int64_t c_step = 1;
  std::int64_t positions = 0;
  std::int64_t cos_stride = 0;
  std::int64_t cos_step = 1;
  std::int64_t sin_stride = 0;
  std::int64_t sin_step = 1;
  std::int64_t interleaved = 0;
  std::int64_t parts = 1;
  std::int64_t part_pairs = 0;
};

Dims without_last(const Dims& dims) { return Dims(std::span(dims.begin(), dims.size() - 1)); }

/// All heads of a token have its position.
Dims position_strides(const Problem& problem, const Dims& heads) {
  const TensorSpec& positions = problem.inputs[1];
  const Dims tokens = broadcast_strides(without_last(heads), positions.shape, positions.strides);
  Dims strides = Dims::filled(heads.size(), 0);
  for (std::size_t d = 0; d < tokens.size(); ++d) strides[d] = tokens[d];
  return strides;
}

/// Whether every four elements that lie together begin at a multiple of their size.
bool is_aligned(const Rope& rope, const Problem& problem) {
  const auto begins = [](const TensorSpec& spec) { return spec.alignment >= 16; };
  if (!std::all_of(problem.inputs.begin(), problem.inputs.end(), begins) || !begins(problem.outputs[0])) return false;
  const auto whole = [](std::int64_t stride) { return stride % 4 == 0; };
  return whole(rope.pairs) && whole(rope.cos_stride) && whole(rope.sin_stride) &&
         std::all_of(std::begin(rope.heads.stride[0]), std::end(rope.heads.stride[0]), whole) &&
         std::all_of(std::begin(rope.heads.stride[2]), std::end(rope.heads.stride[2]), whole);
}

std::string options_of(const Rope& rope, const Problem& problem, const DeviceProfile& profile) {
  if (is_cpu(profile)) return cpu_option(profile);
  return " -D RANK=" + std::to_string(rope.heads.rank) + (is_aligned(rope, problem) ? " -D ALIGNED" : "");
}

void fill_rope(LaunchPlan& plan, const Problem& problem, const PrepareContext& context) {
  const TensorSpec &input = problem.inputs[0], &output = problem.outputs[0];
  const TensorSpec &cosines = problem.inputs[2], &sines = problem.inputs[3];
  const Dims heads = without_last(input.shape);
  Rope rope{.heads = make_index(heads, without_last(input.strides), position_strides(problem, heads),
                                without_last(output.strides))
                         .index,
            .size = input.shape.back(),
            .pairs = cosines.shape[1],
            .a_step = input.strides.back(),
            .c_step = output.strides.back(),
            .positions = cosines.shape[0],
            .cos_stride = cosines.strides[0],
            .cos_step = cosines.strides[1],
            .sin_stride = sines.strides[0],
            .sin_step = sines.strides[1],
            .interleaved = problem.attributes.boolean("interleaved")};
  // On a CPU a work-item has whole heads, on a GPU two vectors of each half.
  const bool cpu = is_cpu(context.profile);
  rope.part_pairs = cpu ? std::max<std::int64_t>(rope.pairs, 1) : 8;
  rope.parts = std::max<std::int64_t>(divided_up(rope.pairs, rope.part_pairs), 1);
  const auto fault = plan.fault(context, "rope: a position is outside the tables; give " +
                                             (rope.positions == 0 ? std::string("tables with rows")
                                                                  : "0 to " + std::to_string(rope.positions - 1)));
  static const std::string source = std::string(parts_cl) + elementwise_cl;
  Launch& launch = plan.add({.source = source,
                             .function = "op_rope",
                             .options = options_of(rope, problem, context.profile),
                             .items = rope.size == 0 ? 0 : rope.heads.count * rope.parts});
  for (std::size_t i = 0; i < problem.inputs.size(); ++i)
    launch.input(i).constant(type_number(problem.inputs[i].dtype));
  launch.output(0).constant(type_number(output.dtype)).fault(fault).constant(rope);
}

}  // namespace

std::unique_ptr<const Plan> prepare_rope(const Problem& problem, const PrepareContext& context) {
  return std::make_unique<LaunchPlan>(problem, context, fill_rope);
}

}  // namespace xpuruntime::opencl
