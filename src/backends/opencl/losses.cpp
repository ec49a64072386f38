#include <algorithm>

#include "backends/opencl/groups.h"
#include "backends/opencl/index.h"
#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/kernels.h"
#include "backends/opencl/lines.h"
#include "core/pointwise_loss.h"

// Losses that are reduced go to the workspace as pairs of loss and weight, which kernels/loss_total.cl adds up.

namespace xpuruntime::opencl {
namespace {

constexpr std::uint64_t pair_bytes = 2 * sizeof(float);

/// How pairs are added up: in one part, or in parts whose sums are added up then.
struct PairSum {
  std::int64_t count = 0;
  std::int64_t parts = 1;
  std::int64_t part_length = 1;
  std::uint64_t sums = 0;  // where in the workspace, behind the pairs

  std::uint64_t bytes() const { return sums + static_cast<std::uint64_t>(parts + 1) * pair_bytes; }
};

PairSum pair_sum(std::int64_t count) {
  constexpr std::int64_t most = 16384, most_parts = 256;
  PairSum sum{.count = count};
  if (count > most) sum.parts = std::min(divided_up(count, most / 4), most_parts);
  sum.part_length = std::max<std::int64_t>(divided_up(count, sum.parts), 1);
  sum.sums = static_cast<std::uint64_t>(count) * pair_bytes;
  return sum;
}

bool is_reduced(const Problem& problem) { return problem.attributes.choice("reduction") != "none"; }

void add_pair_launch(LaunchPlan& plan, const DeviceProfile& profile, std::uint64_t pairs, const PairSum& sum,
                     std::uint64_t to, int y_type, double divisor) {
  static const std::string source = std::string(vectors_cl) + loss_total_cl;
  const int lanes = is_cpu(profile) ? 1 : allowed_items(256, profile);
  Launch& launch = plan.add({.source = source,
                             .function = "loss_total",
                             .options = lanes == 1 ? " -D WIDTH=1 -D DIMS=1 -D ALONE" : " -D WIDTH=1 -D DIMS=1",
                             .items = sum.parts * lanes,
                             .local = static_cast<std::size_t>(lanes)});
  launch.workspace(pairs)
      .constant(sum.count)
      .constant(sum.part_length)
      .output(0)
      .constant(y_type)
      .workspace(to)
      .constant(static_cast<float>(divisor));
  if (lanes > 1) launch.constant(lanes).local(2 * pair_bytes * static_cast<std::size_t>(lanes));
}

/// The workspace's start; any buffer where there is none.
Launch& bind_pairs(Launch& launch, bool used) { return used ? launch.workspace(0) : launch.output(0); }

/// Adds up the pairs at the workspace's start: into the output, or where `y_type` is no_type the last of the sums.
std::uint64_t add_pair_sum(LaunchPlan& plan, const DeviceProfile& profile, const PairSum& sum, int y_type,
                           double divisor) {
  const std::uint64_t last = sum.sums + static_cast<std::uint64_t>(sum.parts) * pair_bytes;
  if (sum.parts == 1) {
    add_pair_launch(plan, profile, 0, sum, last, y_type, divisor);
    return last;
  }
  add_pair_launch(plan, profile, 0, sum, sum.sums, no_type, 1);
  const PairSum second{.count = sum.parts, .part_length = sum.parts};
  add_pair_launch(plan, profile, sum.sums, second, last, y_type, divisor);
  return last;
}

/// Input 1 is of classes, or of a probability for each.
bool has_probabilities(const Problem& problem) { return is_floating(problem.inputs[1].dtype); }
bool is_loss_backward(const Problem& problem) { return problem.direction == Direction::backward; }

std::size_t class_dim(const Problem& problem) { return problem.inputs[0].shape.size() == 1 ? 0 : 1; }

/// Strides of a tensor with an element for each target, in the rank of the scores.
Dims target_strides(const Problem& problem, const TensorSpec& spec) {
  const std::size_t rank = problem.inputs[0].shape.size();
  Dims strides = Dims::filled(rank, 0);
  for (std::size_t d = 0, t = 0; d < rank; ++d)
    if (d != class_dim(problem)) strides[d] = spec.strides[t++];
  return strides;
}

LineShape class_lines(const Problem& problem) {
  const TensorSpec& x = problem.inputs[0];
  const bool backward = is_loss_backward(problem);
  const std::size_t dim = class_dim(problem);
  NestStrides strides = {x.strides};
  unsigned slots = bit(line_x);
  if (has_probabilities(problem)) {
    strides[line_second] = problem.inputs[1].strides;
    slots |= bit(line_second);
  } else {
    strides[line_second] = target_strides(problem, problem.inputs[1]);
  }
  if (backward) {
    strides[line_y] = problem.outputs[0].strides;
    slots |= bit(line_y);
  } else if (!is_reduced(problem)) {
    strides[line_y] = target_strides(problem, problem.outputs[0]);
  }
  if (problem.inputs.size() > (backward ? 3U : 2U)) {
    strides[line_weight] = Dims::filled(x.shape.size(), 0);
    strides[line_weight][dim] = problem.inputs[2].strides[0];
    slots |= bit(line_weight);
  }
  if (backward && !is_reduced(problem)) strides[line_other] = target_strides(problem, problem.inputs.back());
  return {split_nest(x.shape, 1U << dim, strides), slots};
}

/// Whether a mean divides by the weights of the targets that count.
bool divides_by_weights(const Problem& problem) { return problem.attributes.choice("reduction") == "mean"; }

bool needs_pairs(const Problem& problem) {
  return is_loss_backward(problem) ? divides_by_weights(problem) : is_reduced(problem);
}

std::string class_fault(const Problem& problem) {
  const std::int64_t classes = problem.inputs[0].shape[class_dim(problem)];
  return to_string(problem) + ": a target is outside the " + std::to_string(classes) +
         " classes and is not ignore_index; give 0 to " + std::to_string(classes - 1) + " or " +
         std::to_string(problem.attributes.integer("ignore_index"));
}

/// CLASS_PARAMS.
Launch& bind_class_loss(Launch& launch, const Problem& problem, const LineShape& shape, const LineTeam& team,
                        const std::shared_ptr<const Fault>& fault) {
  const bool stores = is_loss_backward(problem) || !is_reduced(problem);
  const bool weighted = problem.inputs.size() > (is_loss_backward(problem) ? 3U : 2U);
  launch.input(0).input(1).constant(type_number(problem.inputs[1].dtype));
  bind_parameter(launch, problem, 2, weighted).output(0);
  launch.constant(stores ? type_number(problem.outputs[0].dtype) : no_type);
  bind_pairs(launch, needs_pairs(problem)).fault(fault);
  const double smoothing = problem.op == OpId::cross_entropy ? problem.attributes.real("label_smoothing") : 0;
  return bind_lines(launch, shape.nest, team)
      .constant(problem.inputs[0].shape[class_dim(problem)])
      .constant(problem.attributes.integer("ignore_index"))
      .constant(static_cast<float>(smoothing));
}

PairSum class_pairs(const Problem& problem) { return pair_sum(class_lines(problem).nest.across.count); }

const char* class_function(const Problem& problem) {
  if (problem.op == OpId::nll_loss) return is_loss_backward(problem) ? "nll_loss_backward" : "nll_loss";
  return is_loss_backward(problem) ? "cross_entropy_backward" : "cross_entropy";
}

const std::string& class_source() {
  static const std::string source = line_source(class_loss_cl);
  return source;
}

}  // namespace

Verdict supports_class_loss(const Problem& problem, const DeviceProfile&) {
  return takes_lines(class_lines(problem).nest);
}

std::uint64_t class_loss_workspace_bytes(const Problem& problem, const DeviceProfile&) {
  return needs_pairs(problem) ? class_pairs(problem).bytes() : 0;
}

std::unique_ptr<const Plan> prepare_class_loss(const Problem& problem, const PrepareContext& context) {
  const LineShape shape = class_lines(problem);
  const std::int64_t targets = shape.nest.across.count;
  const bool backward = is_loss_backward(problem);
  const DataType x = problem.inputs[0].dtype;
  const LineTeam single{.group = is_cpu(context.profile) ? 16 : 0};
  const bool lines = problem.op == OpId::cross_entropy;
  const LineTeam team = lines ? team_for(shape, problem, context.profile) : single;
  auto plan = std::make_unique<LaunchPlan>(context_of(context), token_of(team),
                                           class_loss_workspace_bytes(problem, context.profile));
  const auto fault = plan->fault(context, class_fault(problem));
  std::uint64_t divisor = 0;
  const bool weighted = backward && divides_by_weights(problem) && !has_probabilities(problem);
  if (weighted) {
    bind_class_loss(plan->add({.source = class_source(),
                               .function = "target_weights",
                               .options = line_options(single, shape.nest, x, x),
                               .items = targets,
                               .local = static_cast<std::size_t>(single.group)}),
                    problem, shape, single, fault);
    divisor = add_pair_sum(*plan, context.profile, class_pairs(problem), no_type, 1);
  }
  Launch& launch = plan->add({.source = class_source(),
                              .function = class_function(problem),
                              .options = line_options(team, shape.nest, x, x),
                              .items = lines ? line_items(shape, team) : targets,
                              .local = static_cast<std::size_t>(team.group)});
  bind_class_loss(launch, problem, shape, team, fault);
  if (backward) {
    bind_parameter(launch, problem, problem.inputs.size() - 1, true);
    (weighted ? launch.workspace(divisor) : launch.output(0))
        .constant(int{weighted})
        .constant(divides_by_weights(problem) ? static_cast<float>(targets) : 1.0f);
  } else {
    launch.constant(int{is_reduced(problem)});
    const double divided_by = divides_by_weights(problem) ? 0 : 1;
    if (is_reduced(problem))
      add_pair_sum(*plan, context.profile, class_pairs(problem), type_number(problem.outputs[0].dtype), divided_by);
  }
  return plan;
}

namespace {

struct LossParts {
  std::int64_t parts = 0;
  std::int64_t part_length = 1;
};

LossParts loss_parts(std::int64_t count, const DeviceProfile& profile) {
  const std::int64_t units = std::max(profile.compute_units, 1);
  const std::int64_t least = 4096;
  const std::int64_t most = is_cpu(profile) ? 8 * units : 16 * units;
  const std::int64_t parts = std::clamp<std::int64_t>(divided_up(count, least), 1, most);
  const std::int64_t length = std::max<std::int64_t>(divided_up(divided_up(count, parts), 64) * 64, 64);
  return {divided_up(count, length), length};
}

Nest loss_nest(const Problem& problem) {
  const TensorSpec &x = problem.inputs[0], &t = problem.inputs[1], &y = problem.outputs[0];
  const Dims shape = broadcast_shapes(x.shape, t.shape);
  const Dims written = is_reduced(problem) ? contiguous_strides(shape) : y.strides;
  return make_nest(
      shape, {broadcast_strides(shape, x.shape, x.strides), broadcast_strides(shape, t.shape, t.strides), written});
}

}  // namespace

std::uint64_t pointwise_loss_workspace_bytes(const Problem& problem, const DeviceProfile& profile) {
  return is_reduced(problem) ? pair_sum(loss_parts(loss_nest(problem).count, profile).parts).bytes() : 0;
}

std::unique_ptr<const Plan> prepare_pointwise_loss(const Problem& problem, const PrepareContext& context) {
  static const std::string source = std::string(vectors_cl) + pointwise_loss_cl;
  const bool cpu = is_cpu(context.profile), reduced = is_reduced(problem);
  const Nest nest = loss_nest(problem);
  const LossParts parts = loss_parts(nest.count, context.profile);
  const bool dense = nest.rank == 1 && nest.stride[0][0] == 1 && nest.stride[1][0] == 1 && nest.stride[2][0] == 1 &&
                     is_floating(problem.inputs[1].dtype);
  const int lanes = cpu ? 1 : allowed_items(256, context.profile);
  const std::string options =
      width_option(cpu ? 16 : 1) + dims_option({&nest}) + type_option('A', problem.inputs[0].dtype);
  auto plan = std::make_unique<LaunchPlan>(context_of(context), "parts=" + std::to_string(parts.parts),
                                           pointwise_loss_workspace_bytes(problem, context.profile));
  Launch& launch = plan->add({.source = source,
                              .function = "pointwise_loss",
                              .options = cpu ? options + " -D ALONE" : options,
                              .items = parts.parts * lanes,
                              .local = static_cast<std::size_t>(lanes)});
  const PointwiseLossTerms terms = pointwise_loss_terms(problem);
  launch.input(0)
      .input(1)
      .constant(type_number(problem.inputs[1].dtype))
      .output(0)
      .constant(reduced ? no_type : type_number(problem.outputs[0].dtype));
  bind_pairs(launch, reduced)
      .constant(nest)
      .constant(parts.part_length)
      .constant(int{dense})
      .constant(static_cast<int>(terms.kind))  // kernels/pointwise_loss.cl has the same order
      .constant(int{terms.full})
      .constant(static_cast<float>(terms.eps));
  if (lanes > 1) launch.constant(lanes).local(2 * sizeof(float) * static_cast<std::size_t>(lanes));
  if (reduced)
    add_pair_sum(*plan, context.profile, pair_sum(parts.parts), type_number(problem.outputs[0].dtype), terms.divisor);
  return plan;
}

}  // namespace xpuruntime::opencl
