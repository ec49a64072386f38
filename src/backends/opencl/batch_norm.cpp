#include <algorithm>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"
#include "backends/opencl/reduce.h"

namespace xpuruntime::opencl {
namespace {

bool is_training(const Problem& problem) { return problem.attributes.boolean("training"); }

/// Vectors of a float for each channel in the workspace, one after the other, and the parts of the sums behind them.
struct BatchSpace {
  std::uint64_t moments = 0;  // means, then variances
  std::uint64_t coefficients = 0;
  std::uint64_t parts = 0;
};

BatchSpace space_of(const Problem& problem) {
  constexpr std::int64_t unit = 16;
  const auto two = static_cast<std::uint64_t>(divided_up(2 * problem.inputs[0].shape[1], unit) * unit) * sizeof(float);
  return {0, two, 2 * two};
}

Dims channel_strides(const Problem& problem) {
  Dims strides = Dims::filled(problem.inputs[0].shape.size(), 0);
  strides[1] = 1;
  return strides;
}

/// The mean, or with it in the workspace the variance, of each channel.
Fold moment_of(const Problem& problem, bool variance) {
  const TensorSpec& x = problem.inputs[0];
  const BatchSpace space = space_of(problem);
  Fold fold = fold_of(x, ~2U, channel_strides(problem), channel_strides(problem));
  fold.x = {FoldOperand::Where::input, 0, x.dtype};
  fold.y.index = space.moments;
  fold.aligned = x.alignment >= 16;
  fold.divisor = static_cast<double>(fold.reduced.count * fold.repeats);
  if (!variance) return fold;
  fold.y.index += static_cast<std::uint64_t>(x.shape[1]) * sizeof(float);
  fold.squares = true;
  fold.centre = space.moments;
  return fold;
}

Launch& bind_channels(Launch& launch, const Problem& problem, std::size_t input) {
  const bool given = input < problem.inputs.size();
  return bind_parameter(launch, problem, input, given)
      .constant(given ? problem.inputs[input].strides[0] : std::int64_t{0});
}

Launch& bind_statistics(Launch& launch, const Problem& problem, std::size_t output) {
  const bool given = output < problem.outputs.size();
  launch.output(given ? output : 0).constant(given ? type_number(problem.outputs[output].dtype) : no_type);
  return launch.constant(given ? problem.outputs[output].strides[0] : std::int64_t{0});
}

/// Whether vectors of so many elements, along the last dim, all start at multiples of 16 bytes.
bool has_aligned_runs(const Problem& problem, const Nest& nest, int width) {
  if (problem.inputs[0].alignment < 16 || problem.outputs[0].alignment < 16) return false;
  if (nest.last_extent() % width != 0) return false;
  for (const std::size_t tensor : {0, 2}) {
    if (nest.last_stride(tensor) != 1) return false;
    for (std::int64_t d = 1; d < nest.rank; ++d)
      if (nest.stride[tensor][d] % width != 0) return false;
  }
  return true;
}

std::string batch_options(const Problem& problem, const Nest& nest, int width, bool aligned) {
  return width_option(width, aligned) + dims_option({&nest}) + type_option('A', problem.inputs[0].dtype) + " -D ALONE";
}

const std::string& batch_source() {
  static const std::string source = std::string(vectors_cl) + batch_norm_cl;
  return source;
}

void add_coefficients(LaunchPlan& plan, const Problem& problem, const DeviceProfile& profile,
                      const std::string& options) {
  const std::int64_t channels = problem.inputs[0].shape[1];
  const std::int64_t count = channels == 0 ? 0 : element_count(problem.inputs[0]) / channels;
  const double momentum = count == 0 ? 0 : problem.attributes.real("momentum");
  const double unbiased = count > 1 ? static_cast<double>(count) / static_cast<double>(count - 1) : 1;
  Launch& launch = plan.add({.source = batch_source(),
                             .function = "batch_coefficients",
                             .options = options,
                             .items = channels,
                             .local = is_cpu(profile) ? 16U : 64U});
  for (std::size_t input = 1; input <= 4; ++input) bind_channels(launch, problem, input);
  for (std::size_t output = 1; output <= 2; ++output) bind_statistics(launch, problem, output);
  launch.workspace(space_of(problem).moments)
      .workspace(space_of(problem).coefficients)
      .constant(channels)
      .constant(int{is_training(problem)})
      .constant(static_cast<float>(momentum))
      .constant(static_cast<float>(unbiased))
      .constant(static_cast<float>(problem.attributes.real("eps")));
}

}  // namespace

std::uint64_t batch_norm_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const std::uint64_t parts = is_training(problem) ? std::max(fold_bytes(moment_of(problem, false), profile),
                                                              fold_bytes(moment_of(problem, true), profile))
                                                   : 0;
  return space_of(problem).parts + parts;
}

std::unique_ptr<const Plan> prepare_batch_norm(const Problem& problem, const PrepareContext& context) {
  constexpr std::int64_t cpu_elements = 4096;  // of an item
  constexpr int cpu_width = 16;
  const bool cpu = is_cpu(context.profile);
  const Nest nest = fold_of(problem.inputs[0], 0, channel_strides(problem), problem.outputs[0].strides).kept;
  const auto wide = static_cast<int>(16 / size_of(problem.inputs[0].dtype));
  const bool aligned = !cpu && has_aligned_runs(problem, nest, wide);
  const int width = cpu ? cpu_width : aligned ? wide : 1;
  const std::string options = batch_options(problem, nest, width, aligned);
  const BatchSpace space = space_of(problem);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), std::string(),
                                           batch_norm_workspace_bytes(problem, context.profile));
  if (is_training(problem)) {
    for (const bool variance : {false, true})
      add_fold(*plan, moment_of(problem, variance), context.profile, space.parts);
  }
  add_coefficients(*plan, problem, context.profile, options);
  const std::int64_t each = cpu ? cpu_elements : width;
  const std::int64_t items =
      nest.count == 0 ? 0 : nest.count / nest.last_extent() * divided_up(nest.last_extent(), each);
  bind_output(plan->add({.source = batch_source(),
                         .function = "batch_apply",
                         .options = options,
                         .items = items,
                         .local = cpu ? 1U : 0U})
                  .input(0),
              problem, 0)
      .workspace(space.coefficients)
      .constant(problem.inputs[0].shape[1])
      .constant(nest)
      .constant(each);
  return plan;
}

}  // namespace xpuruntime::opencl
