#include "backends/cpu/base/convert.h"
#include "backends/cpu/base/problem_plan.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/kernels.h"
#include "core/views.h"

namespace xpuruntime::cpu {
namespace {

/// copy, transpose and slice, which are one thing seen from the input.
Status run_copy(const Problem& problem, const RunArguments& arguments) {
  const View view = source_view(problem);
  const auto* in = element_at(arguments.inputs[0]->as<const std::byte>(), view);
  convert_elements(view.spec, in, problem.outputs[0], arguments.outputs[0]->as<void>());
  return {};
}

Status run_concat(const Problem& problem, const RunArguments& arguments) {
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const View target = concat_target(problem, i);
    convert_elements(problem.inputs[i], arguments.inputs[i]->as<void>(), target.spec,
                     element_at(arguments.outputs[0]->as<std::byte>(), target));
  }
  return {};
}

/// The output without its last dim: where the rows start.
TensorSpec positions(const Problem& problem) {
  TensorSpec spec = problem.outputs[0];
  spec.shape = Dims(std::span(spec.shape.data(), spec.shape.size() - 1));
  spec.strides = Dims(std::span(spec.strides.data(), spec.shape.size()));
  return spec;
}

Status run_embedding(const Problem& problem, const RunArguments& arguments) {
  const TensorSpec &indices = problem.inputs[0], &table = problem.inputs[1];
  const Status status = check_indices(indices, arguments.inputs[0]->as<void>(), table.shape[0]);
  if (!status.ok()) return status;
  // One row of the output at a time, as a tensor of one dim.
  TensorSpec from = table, to = problem.outputs[0];
  from.shape = to.shape = Dims{table.shape[1]};
  from.strides = Dims{table.strides[1]};
  to.strides = Dims{problem.outputs[0].strides.back()};
  const LoadInteger load = integer_loader_of(indices.dtype);
  Walk<2> walk(indices.shape, indices, positions(problem));
  for (; walk.more(); walk.next()) {
    const std::int64_t row = load(arguments.inputs[0]->as<void>(), walk.offset(0));
    convert_elements(from, element_at(arguments.inputs[1]->as<const std::byte>(), {from, row * table.strides[0]}), to,
                     element_at(arguments.outputs[0]->as<std::byte>(), {to, walk.offset(1)}));
  }
  return {};
}

}  // namespace

std::unique_ptr<const Plan> prepare_copy_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_copy);
}

std::unique_ptr<const Plan> prepare_concat_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_concat);
}

std::unique_ptr<const Plan> prepare_embedding_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ProblemPlan>(problem, run_embedding);
}

}  // namespace xpuruntime::cpu
