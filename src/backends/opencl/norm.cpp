#include <algorithm>
#include <cmath>

#include "backends/opencl/classes.h"
#include "backends/opencl/groups.h"
#include "backends/opencl/index.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"
#include "backends/opencl/reduce.h"

namespace xpuruntime::opencl {
namespace {

bool is_norm_backward(const Problem& problem) { return problem.direction == Direction::backward; }

unsigned norm_dims(const Problem& problem) {
  const std::size_t rank = problem.inputs[0].shape.size();
  if (problem.op == OpId::normalize) return dim_bit(problem.attributes.integer("dim"), rank);
  const std::int64_t dims = problem.op == OpId::layer_norm ? problem.attributes.integer("normalized_rank") : 1;
  return (1U << rank) - (1U << (rank - static_cast<std::size_t>(dims)));
}

/// How many inputs come before the gradient.
std::size_t norm_inputs(const Problem& problem) { return problem.inputs.size() - (is_norm_backward(problem) ? 1 : 0); }
std::size_t norm_weight(const Problem& problem) { return problem.op == OpId::add_rms_norm ? 2 : 1; }

std::size_t most_norm_inputs(const Problem& problem) {
  const std::size_t forward = problem.op == OpId::normalize ? 1 : problem.op == OpId::rms_norm ? 2 : 3;
  return forward + (is_norm_backward(problem) ? 1 : 0);
}

bool has_norm_parameter(const Problem& problem, std::size_t input) {
  return problem.op != OpId::normalize && input < norm_inputs(problem);
}

LineShape norm_shape(const Problem& problem) {
  const Dims& shape = problem.inputs[0].shape;
  NestStrides strides = {problem.inputs[0].strides, {}, problem.outputs[0].strides};
  unsigned slots = bit(line_x) | bit(line_y);
  const auto put = [&](LineSlot slot, const TensorSpec& spec) {
    strides[slot] = broadcast_strides(shape, spec.shape, spec.strides);
    slots |= bit(slot);
  };
  if (is_norm_backward(problem)) put(line_second, problem.inputs.back());
  if (problem.op == OpId::add_rms_norm) {
    put(line_second, problem.inputs[1]);
    put(line_other, problem.outputs[1]);
  }
  const std::size_t weight = norm_weight(problem);
  if (has_norm_parameter(problem, weight)) put(line_weight, problem.inputs[weight]);
  if (has_norm_parameter(problem, weight + 1) && !is_norm_backward(problem))
    put(line_other, problem.inputs[weight + 1]);
  return {split_nest(shape, norm_dims(problem), strides), slots};
}

/// kernels/norm.cl names its functions like the ops, except that `normalize` is one of OpenCL's own.
const char* norm_function(const Problem& problem) {
  if (is_norm_backward(problem)) return "norm_backward";
  return problem.op == OpId::normalize ? "normalize_lines" : to_string(problem.op).data();
}

/// As normalize_lines numbers them.
int norm_kind(double p) {
  if (p == 0 || p == 1 || p == 2) return static_cast<int>(p);
  return std::isinf(p) ? 3 : 4;
}

/// The sums that norm_parameters leaves for a second launch, after the lines' means and scales.
struct ParameterSums {
  std::int64_t parts = 0;
  std::int64_t part_lines = 0;
  std::uint64_t offset = 0;  // bytes of the workspace before them
  std::uint64_t bytes = 0;   // of those of one parameter
};

ParameterSums parameter_sums(const Problem& problem, const SplitNest& nest, const DeviceProfile& profile) {
  constexpr std::int64_t least_lines = 16;
  const std::int64_t wanted = is_cpu(profile) ? 4 * std::max(profile.compute_units, 1) : 256;
  const std::int64_t lines = nest.across.count;
  ParameterSums sums;
  if (!is_norm_backward(problem)) return sums;
  sums.parts = std::clamp<std::int64_t>(lines / least_lines, 1, wanted);
  sums.part_lines = divided_up(lines, sums.parts);
  sums.offset = static_cast<std::uint64_t>(divided_up(2 * lines, 4) * 4) * sizeof(float);
  sums.bytes = static_cast<std::uint64_t>(sums.parts * nest.along.count) * sizeof(float);
  return sums;
}

/// Many short rows, a CPU's item each, cost less to start in groups; layer_norm alone gains more than it loses.
std::size_t norm_group(const Problem& problem, const LineShape& shape, const LineTeam& team) {
  constexpr std::int64_t many = 1024;
  const bool grouped = problem.op == OpId::layer_norm && !is_norm_backward(problem) && team.rows && team.group == 1;
  return static_cast<std::size_t>(grouped && shape.nest.across.count >= many ? 16 : team.group);
}

/// The outputs in the lines' order of elements.
void add_parameter_gradients(LaunchPlan& plan, const Problem& problem, const PrepareContext& context,
                             const LineShape& shape, const LineTeam& team, const std::string& source) {
  const ParameterSums sums = parameter_sums(problem, shape.nest, context.profile);
  LineTeam each = team;
  each.held = 0;
  each.lanes = 1;
  if (!team.rows) each.width = 1;
  const std::int64_t blocks = divided_up(shape.nest.along.count, each.width);
  plan.add({.source = source,
            .function = "norm_parameters",
            .options = line_options(each, shape.nest, problem.inputs[0].dtype, problem.inputs.back().dtype),
            .items = shape.nest.across.count == 0 ? 0 : blocks * sums.parts,
            .local = is_cpu(context.profile) ? 1U : 64U})
      .input(0)
      .input(problem.inputs.size() - 1)
      .workspace(0)
      .workspace(sums.offset)
      .constant(shape.nest.across)
      .constant(shape.nest.along)
      .constant(sums.parts)
      .constant(sums.part_lines);
  const std::int64_t columns = shape.nest.along.count;
  for (std::size_t output = 1; output < problem.outputs.size(); ++output) {
    add_column_sum(plan, context.profile, sums.offset + (output - 1) * sums.bytes,
                   shape.nest.across.count == 0 ? 0 : sums.parts, columns, problem, output);
  }
}

void fill_norm(LaunchPlan& plan, const Problem& problem, const PrepareContext& context, const LineTeam& team) {
  static const std::string source = line_source(norm_cl);
  const LineShape shape = norm_shape(problem);
  const bool two = is_norm_backward(problem) || problem.op == OpId::add_rms_norm;
  const std::size_t second = is_norm_backward(problem) ? problem.inputs.size() - 1 : two ? 1 : 0;
  const std::size_t weight = norm_weight(problem);
  Launch& launch =
      plan.add({.source = source,
                .function = norm_function(problem),
                .options = line_options(team, shape.nest, problem.inputs[0].dtype, problem.inputs[second].dtype) +
                           alike_option(problem, most_norm_inputs(problem), context.profile),
                .items = line_items(shape, team),
                .local = norm_group(problem, shape, team)});
  launch.input(0);
  if (two) launch.input(second);
  bind_output(launch, problem, 0);
  if (problem.op == OpId::add_rms_norm) bind_output(launch, problem, 1);
  if (problem.op != OpId::normalize) bind_parameter(launch, problem, weight, has_norm_parameter(problem, weight));
  if (problem.op == OpId::layer_norm && !is_norm_backward(problem))
    bind_parameter(launch, problem, weight + 1, has_norm_parameter(problem, weight + 1));
  if (is_norm_backward(problem)) launch.workspace(0);
  bind_lines(launch, shape.nest, team);
  if (is_norm_backward(problem)) launch.constant(int{problem.op == OpId::layer_norm});
  if (problem.op == OpId::normalize) {
    const double p = problem.attributes.real("p");
    launch.constant(norm_kind(p)).constant(static_cast<float>(p));
  }
  launch.constant(static_cast<float>(problem.attributes.real("eps")));
  if (problem.outputs.size() > 1 && is_norm_backward(problem))
    add_parameter_gradients(plan, problem, context, shape, team, source);
}

}  // namespace

Verdict supports_norm(const Problem& problem, const DeviceProfile&) { return takes_lines(norm_shape(problem).nest); }

std::uint64_t norm_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  const ParameterSums sums = parameter_sums(problem, norm_shape(problem).nest, profile);
  return sums.offset + 2 * sums.bytes;
}

std::vector<std::string> norm_variants(const Problem& problem, const PrepareContext& context) {
  const Problem any = norm_class(problem).value_or(problem);
  std::vector<std::string> tokens;
  for (const LineTeam& team : teams_for(norm_shape(any), any, context.profile)) tokens.push_back(token_of(team));
  return tokens;
}

std::unique_ptr<const Plan> prepare_norm_variant(const Problem& problem, const PrepareContext& context,
                                                 std::string_view token) {
  const Problem any = norm_class(problem).value_or(problem);
  const LineTeam team = team_of(token, norm_shape(any), any, context.profile);
  const auto fill = [team](LaunchPlan& plan, const Problem& of, const PrepareContext& on) {
    fill_norm(plan, of, on, team);
  };
  return std::make_unique<LaunchPlan>(problem, context, fill, token_of(team),
                                      norm_workspace_bytes(problem, context.profile));
}

std::unique_ptr<const Plan> prepare_norm(const Problem& problem, const PrepareContext& context) {
  return prepare_norm_variant(problem, context, {});
}

}  // namespace xpuruntime::opencl
