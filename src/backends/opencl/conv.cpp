#include "backends/opencl/conv.h"

#include "backends/opencl/groups.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::opencl {
ConvShape strided_conv_shape(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &w = problem.inputs[1], &y = problem.outputs[0];
  ConvShape shape{xpuruntime::conv_shape(problem)};
  shape.x_batch = x.strides[0];
  shape.x_channel = x.strides[1];
  spread(x.strides, shape.x, 2);
  shape.w_out = w.strides[0];
  shape.w_in = w.strides[1];
  spread(w.strides, shape.w, 2);
  shape.y_batch = y.strides[0];
  shape.y_channel = y.strides[1];
  spread(y.strides, shape.y, 2);
  if (problem.inputs.size() > 2) {
    shape.bias_stride = problem.inputs[2].strides[0];
    shape.has_bias = 1;
  }
  return shape;
}

Verdict has_modest_windows(const Problem& problem, const DeviceProfile&) {
  constexpr std::int64_t most = 1 << 26;  // their products with extents of tensors that can exist fit 63 bits
  const xpuruntime::ConvShape shape = xpuruntime::conv_shape(problem);
  const Verdict each =
      is_at_most("the largest of kernel size, stride, padding and dilation", shape.largest_number(), most);
  return each.supported ? is_at_most("elements of a window", shape.depth(), std::int64_t{1} << 31) : each;
}

std::string conv_source(const char* source) { return std::string(product_cl) + conv_cl + source; }

Operand bias_of(const Problem& problem) {
  if (problem.inputs.size() < 3) return {Operand::Place::input, 0, problem.inputs[0].dtype};
  return {Operand::Place::input, 2, problem.inputs[2].dtype};
}

std::string conv_types(const Problem& problem) {
  return type_option('A', problem.inputs[0].dtype) + type_option('B', problem.inputs[1].dtype) +
         type_option('C', problem.outputs[0].dtype) + type_option('D', bias_of(problem).dtype);
}

std::unique_ptr<const Plan> prepare_conv_direct(const Problem& problem, const PrepareContext& context) {
  const ConvShape shape = strided_conv_shape(problem);
  const bool cpu = is_cpu(context.profile);
  const std::int64_t planes = shape.batch * shape.groups * shape.out_channels, lines = shape.out[0] * shape.out[1];
  // A CPU's items have as many rows as leave its cores enough of them.
  const std::int64_t wanted = 8 * std::max(context.profile.compute_units, 1);
  const std::int64_t each = std::max<std::int64_t>(1, std::min(lines, planes * lines / wanted));
  auto plan = std::make_unique<LaunchPlan>(context_of(context));
  Launch& launch = plan->add({.source = conv_source(conv_direct_cl),
                              .function = "conv_direct",
                              .options = conv_types(problem) + cpu_option(context.profile),
                              .items = planes * (cpu ? divided_up(lines, each) : lines * shape.out[2]),
                              .local = cpu ? std::size_t{1} : std::size_t{0}});
  bind(launch.input(0).input(1), bias_of(problem)).output(0).constant(shape);
  if (cpu) launch.constant(each);
  return plan;
}

}  // namespace xpuruntime::opencl
