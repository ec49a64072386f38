#include <cmath>
#include <limits>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/norm/kernels.h"

namespace xpuruntime::cpu {
namespace {

/// exp(x - max) / sum, or its logarithm; three passes over each line along the axis, all in double.
class SoftmaxPlan final : public Plan {
 public:
  explicit SoftmaxPlan(const Problem& problem)
      : in_(problem.inputs[0]), out_(problem.outputs[0]), outer_(in_.shape), log_(problem.op == OpId::log_softmax) {
    const auto rank = static_cast<std::int64_t>(in_.shape.size());
    if (rank == 0) return;
    const std::int64_t dim = problem.attributes.integer("dim");
    const auto axis = static_cast<std::size_t>(dim < 0 ? dim + rank : dim);
    extent_ = in_.shape[axis];
    in_step_ = in_.strides[axis];
    out_step_ = out_.strides[axis];
    outer_[axis] = extent_ == 0 ? 0 : 1;
  }

  Status run(const RunArguments& arguments) const override {
    const void* in = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    Walk<2> walk(outer_, in_, out_);
    const LoadElement load = loader_of(in_.dtype);
    const StoreElement store = storer_of(out_.dtype);
    for (; walk.more(); walk.next()) line(load, store, in, walk.offset(0), out, walk.offset(1));
    return {};
  }

 private:
  void line(LoadElement load, StoreElement store, const void* in, std::int64_t from, void* out, std::int64_t to) const {
    double highest = -std::numeric_limits<double>::infinity();
    for (std::int64_t i = 0; i < extent_; ++i) highest = std::fmax(highest, load(in, from + i * in_step_));
    double sum = 0;
    for (std::int64_t i = 0; i < extent_; ++i) sum += std::exp(load(in, from + i * in_step_) - highest);
    for (std::int64_t i = 0; i < extent_; ++i) {
      const double shifted = load(in, from + i * in_step_) - highest;
      store(out, to + i * out_step_, log_ ? shifted - std::log(sum) : std::exp(shifted) / sum);
    }
  }

  TensorSpec in_;
  TensorSpec out_;
  Dims outer_;
  bool log_;
  std::int64_t extent_ = 1;
  std::int64_t in_step_ = 0;
  std::int64_t out_step_ = 0;
};

}  // namespace

std::unique_ptr<const Plan> prepare_softmax_reference(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_softmax_backward_reference(problem);
  return std::make_unique<SoftmaxPlan>(problem);
}

}  // namespace xpuruntime::cpu
