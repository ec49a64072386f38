#include "backends/opencl/classes.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"

namespace xpuruntime::opencl {
namespace {

LineShape softmax_shape(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &last = problem.inputs.back();  // backward: the gradient
  const unsigned along = dim_bit(problem.attributes.integer("dim"), x.shape.size());
  return {split_nest(x.shape, along, {x.strides, last.strides, problem.outputs[0].strides}),
          bit(line_x) | bit(line_second) | bit(line_y)};
}

void fill_softmax(LaunchPlan& plan, const Problem& problem, const PrepareContext& context, const LineTeam& team) {
  static const std::string source = line_source(softmax_cl);
  const bool backward = problem.direction == Direction::backward;
  const LineShape shape = softmax_shape(problem);
  Launch& launch = plan.add(
      {.source = source,
       .function = backward ? "softmax_backward" : "softmax",
       .options = line_options(team, shape.nest, problem.inputs[0].dtype, problem.inputs.back().dtype) +
                  narrow_option(problem, context.profile) + alike_option(problem, backward ? 2 : 1, context.profile),
       .items = line_items(shape, team),
       .local = static_cast<std::size_t>(team.group)});
  launch.input(0);
  if (backward) launch.input(1);
  bind_lines(bind_output(launch, problem, 0), shape.nest, team).constant(int{problem.op == OpId::log_softmax});
}

}  // namespace

Verdict supports_softmax(const Problem& problem, const DeviceProfile&) {
  return takes_lines(softmax_shape(problem).nest);
}

std::vector<std::string> softmax_variants(const Problem& problem, const PrepareContext& context) {
  const Problem any = shape_class(problem).value_or(problem);
  std::vector<std::string> tokens;
  for (const LineTeam& team : teams_for(softmax_shape(any), any, context.profile)) tokens.push_back(token_of(team));
  return tokens;
}

std::unique_ptr<const Plan> prepare_softmax_variant(const Problem& problem, const PrepareContext& context,
                                                    std::string_view token) {
  const Problem any = shape_class(problem).value_or(problem);
  const LineTeam team = team_of(token, softmax_shape(any), any, context.profile);
  const auto fill = [team](LaunchPlan& plan, const Problem& of, const PrepareContext& with) {
    fill_softmax(plan, of, with, team);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, token_of(team));
}

std::unique_ptr<const Plan> prepare_softmax(const Problem& problem, const PrepareContext& context) {
  return prepare_softmax_variant(problem, context, {});
}

}  // namespace xpuruntime::opencl
