#include <limits>

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"
#include "core/windows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
namespace {

/// As kernels/pool.cl has it.
struct PoolWindow : Windows {
  Extents x_step = {}, y_step = {};
};

bool takes_mean(const Problem& problem) { return problem.op == OpId::avg_pool2d || problem.op == OpId::avg_pool3d; }

PoolWindow window_of(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &y = problem.outputs[0];
  PoolWindow window{pool_windows(problem)};
  spread(x.strides, window.x_step, 2);
  spread(y.strides, window.y_step, 2);
  return window;
}

Nest planes_of(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &y = problem.outputs[0];
  const auto first_two = [](const Dims& dims) { return Dims{dims[0], dims[1]}; };
  return make_nest(first_two(x.shape), {first_two(x.strides), {}, first_two(y.strides)});
}

/// Whether the channels are neighbours in both tensors.
bool has_channel_rows(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &y = problem.outputs[0];
  return x.shape[1] > 1 && x.strides[1] == 1 && y.strides[1] == 1;
}

}  // namespace

Verdict supports_pool(const Problem& problem, const DeviceProfile&) {
  const DataType x = problem.inputs[0].dtype, y = problem.outputs[0].dtype;
  if (is_floating(x) != is_floating(y))
    return refuse_dtype("output 0", y, is_floating(x) ? to_string(fast_floats) : "integers");
  const PoolWindow window = window_of(problem);
  for (const std::int64_t taps : window.kernel)
    if (const Verdict few = is_at_most("kernel_size", taps, std::numeric_limits<std::int32_t>::max()); !few.supported)
      return few;
  return Verdict::yes();
}

std::unique_ptr<const Plan> prepare_pool(const Problem& problem, const PrepareContext& context) {
  static const std::string source = std::string(vectors_cl) + pool_cl;
  constexpr int cpu_width = 8;
  const DataType x = problem.inputs[0].dtype;
  const bool cpu = is_cpu(context.profile), channels = has_channel_rows(problem);
  const int width = cpu && is_floating(x) ? cpu_width : 1;
  const PoolWindow window = window_of(problem);
  const Nest planes = planes_of(problem);
  const std::int64_t places = window.out[0] * window.out[1];
  std::int64_t items = planes.count * places * (width == 1 ? window.out[2] : 1);
  if (channels && planes.count > 0)
    items = planes.count / planes.last_extent() * places * window.out[2] * divided_up(planes.last_extent(), width);
  std::string options = width_option(width) + dims_option({&planes}) + " -D ALONE";
  options += is_floating(x) ? type_option('A', x) : " -D INTEGER";
  if (takes_mean(problem)) options += " -D AVERAGE";
  auto plan = std::make_unique<LaunchPlan>(context_of(context), channels ? "channels" : "planes");
  bind_output(plan->add({.source = source,
                         .function = channels ? "pool_channels" : "pool_planes",
                         .options = options,
                         .items = items,
                         .local = cpu ? 16U : 0U})
                  .input(0)
                  .constant(type_number(x)),
              problem, 0)
      .constant(planes)
      .constant(window)
      .constant(int{takes_mean(problem) && problem.attributes.boolean("count_include_pad")});
  return plan;
}

}  // namespace xpuruntime::opencl
