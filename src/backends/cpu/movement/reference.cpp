#include "backends/cpu/base/convert.h"
#include "backends/cpu/movement/indices.h"
#include "backends/cpu/movement/kernels.h"
#include "core/views.h"

namespace xpuruntime::cpu {
namespace {

/// copy, transpose and slice, which are one thing seen from the input.
class CopyPlan final : public Plan {
 public:
  explicit CopyPlan(const Problem& problem) : view_(source_view(problem)), to_(problem.outputs[0]) {}

  Status run(const RunArguments& arguments) const override {
    const auto* in = element_at(arguments.inputs[0]->as<const std::byte>(), view_);
    convert_elements(view_.spec, in, to_, arguments.outputs[0]->as<void>());
    return {};
  }

 private:
  View view_;
  TensorSpec to_;
};

class ConcatPlan final : public Plan {
 public:
  explicit ConcatPlan(const Problem& problem) : problem_(problem) {}

  Status run(const RunArguments& arguments) const override {
    for (std::size_t i = 0; i < problem_.inputs.size(); ++i) {
      const View target = concat_target(problem_, i);
      convert_elements(problem_.inputs[i], arguments.inputs[i]->as<void>(), target.spec,
                       element_at(arguments.outputs[0]->as<std::byte>(), target));
    }
    return {};
  }

 private:
  Problem problem_;
};

class EmbeddingPlan final : public Plan {
 public:
  explicit EmbeddingPlan(const Problem& problem) : problem_(problem) {}

  Status run(const RunArguments& arguments) const override {
    const TensorSpec &indices = problem_.inputs[0], &table = problem_.inputs[1];
    const Status status = check_indices(indices, arguments.inputs[0]->as<void>(), table.shape[0]);
    if (!status.ok()) return status;
    // One row of the output at a time, as a tensor of one dim.
    TensorSpec from = table, to = problem_.outputs[0];
    from.shape = to.shape = Dims{table.shape[1]};
    from.strides = Dims{table.strides[1]};
    to.strides = Dims{problem_.outputs[0].strides.back()};
    const LoadInteger load = integer_loader_of(indices.dtype);
    Walk<2> walk(indices.shape);
    walk.set_operand(0, indices);
    walk.set_operand(1, positions());
    for (; walk.more(); walk.next()) {
      const std::int64_t row = load(arguments.inputs[0]->as<void>(), walk.offset(0));
      convert_elements(from, element_at(arguments.inputs[1]->as<const std::byte>(), {from, row * table.strides[0]}), to,
                       element_at(arguments.outputs[0]->as<std::byte>(), {to, walk.offset(1)}));
    }
    return {};
  }

 private:
  /// The output without its last dim: where the rows start.
  TensorSpec positions() const {
    TensorSpec spec = problem_.outputs[0];
    spec.shape = Dims(std::span(spec.shape.data(), spec.shape.size() - 1));
    spec.strides = Dims(std::span(spec.strides.data(), spec.shape.size()));
    return spec;
  }

  Problem problem_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_copy_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<CopyPlan>(problem);
}

std::unique_ptr<const Plan> prepare_concat_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<ConcatPlan>(problem);
}

std::unique_ptr<const Plan> prepare_embedding_reference(const Problem& problem, const PrepareContext&) {
  return std::make_unique<EmbeddingPlan>(problem);
}

}  // namespace xpuruntime::cpu
