#include "backends/cpu/elementwise/backward_reference.h"

#include "backends/cpu/base/elements.h"
#include "backends/cpu/matmul/gradient_views.h"
#include "backends/cpu/matmul/kernels.h"
#include "core/backward.h"
#include "core/matmul_shape.h"

namespace xpuruntime::cpu {
namespace {

const void* data_of(const RunArguments& arguments, const StageTensor& tensor) {
  const bool input = tensor.base == StageTensor::Base::input;
  if (input) return arguments.inputs[tensor.at]->as<const std::byte>();
  if (tensor.base == StageTensor::Base::output) return arguments.outputs[tensor.at]->as<const std::byte>();
  return arguments.workspace;
}

/// out = sum of a times b over the columns of a and the batch dims that out has not, in double.
class SumOfProducts {
 public:
  SumOfProducts(const StageTensor& a, const StageTensor& b, const StageTensor& out)
      : a_(a),
        b_(b),
        out_(out),
        load_a_(loader_of(a.spec.dtype)),
        load_b_(loader_of(b.spec.dtype)),
        store_(storer_of(out.spec.dtype)) {
    const std::size_t rank = std::max(a.spec.shape.size(), b.spec.shape.size());
    for (StageTensor* tensor : {&a_, &b_, &out_}) *tensor = padded_to(*tensor, rank);
    kept_ = summed_ = Dims::filled(rank, 1);
    for (std::size_t i = 0; i + 2 < rank; ++i) {
      const std::int64_t extent = a_.spec.shape[i] == 1 ? b_.spec.shape[i] : a_.spec.shape[i];
      (out_.spec.shape[i] == extent ? kept_ : summed_)[i] = extent;
    }
    kept_[rank - 2] = a_.spec.shape[rank - 2];
    kept_[rank - 1] = b_.spec.shape[rank - 1];
    summed_[rank - 1] = a_.spec.shape[rank - 1];
    set_operand(kept_strides_[0], a_.spec, rank - 1);
    set_operand(kept_strides_[1], b_.spec, rank - 2);
    // The summed extent stands last: in a it is that of the columns, in b that of the rows.
    set_operand(summed_strides_[0], a_.spec, rank - 2);
    set_operand(summed_strides_[1], b_.spec, rank - 1);
    summed_strides_[1].strides[rank - 1] = b_.spec.strides[rank - 2];
    summed_strides_[1].shape[rank - 1] = b_.spec.shape[rank - 2];
  }

  void run(const RunArguments& arguments) const {
    const void* a = data_of(arguments, a_);
    const void* b = data_of(arguments, b_);
    void* out = arguments.outputs[out_.at]->as<std::byte>();
    Walk<3> kept(kept_, kept_strides_[0], kept_strides_[1], out_.spec);
    for (; kept.more(); kept.next()) {
      Walk<2> summed(summed_, summed_strides_[0], summed_strides_[1]);
      double sum = 0;
      for (; summed.more(); summed.next()) {
        sum += load_a_(a, kept.offset(0) + summed.offset(0)) * load_b_(b, kept.offset(1) + summed.offset(1));
      }
      store_(out, kept.offset(2), sum);
    }
  }

 private:
  /// The operand without one dim: an extent of 1 is not walked.
  static void set_operand(TensorSpec& to, const TensorSpec& from, std::size_t without) {
    to = from;
    to.shape[without] = 1;
  }

  StageTensor a_, b_, out_;
  LoadElement load_a_, load_b_;
  StoreElement store_;
  Dims kept_, summed_;
  TensorSpec kept_strides_[2], summed_strides_[2];
};

class ProductBackwardPlan final : public Plan {
 public:
  explicit ProductBackwardPlan(const Problem& problem) {
    const GradientViews views = gradient_views(problem);
    if (views.has_da) sums_.emplace_back(views.gradient, transposed(views.b), views.da);
    if (views.has_db) sums_.emplace_back(transposed(views.a), views.gradient, views.db);
  }

  Status run(const RunArguments& arguments) const override {
    for (const SumOfProducts& sum : sums_) sum.run(arguments);
    return {};
  }

 private:
  std::vector<SumOfProducts> sums_;
};

/// The gradient of the sums before the activation goes to the workspace, in double.
class LinearBackwardPlan final : public Plan {
 public:
  explicit LinearBackwardPlan(const Problem& problem)
      : problem_(problem), views_(gradient_views(problem)), slope_(slope_of(activation_of(problem.attributes))) {
    const Dims& shape = views_.gradient.spec.shape;
    before_ = {StageTensor::Base::workspace, 0, make_spec(DataType::float64, shape)};
    if (views_.has_da) sums_.emplace_back(before_, transposed(views_.b), views_.da);
    if (views_.has_db) sums_.emplace_back(transposed(views_.a), before_, views_.db);
  }

  Status run(const RunArguments& arguments) const override {
    fill(arguments);
    for (const SumOfProducts& sum : sums_) sum.run(arguments);
    if (has_bias()) add_bias(arguments);
    return {};
  }

 private:
  bool has_bias() const { return problem_.inputs.size() > 3; }

  double bias(const RunArguments& arguments, std::int64_t column) const {
    if (!has_bias()) return 0;
    const TensorSpec& spec = problem_.inputs[2];
    return loader_of(spec.dtype)(arguments.inputs[2]->as<const std::byte>(), column * spec.strides[0]);
  }

  /// What the activation was applied to, at the walk's position.
  double sum_before(const RunArguments& arguments, std::int64_t at_x, std::int64_t column) const {
    const TensorSpec &x = problem_.inputs[0], &weight = problem_.inputs[1];
    const LoadElement load_x = loader_of(x.dtype), load_weight = loader_of(weight.dtype);
    double sum = bias(arguments, column);
    for (std::int64_t p = 0; p < weight.shape[1]; ++p) {
      sum +=
          load_x(arguments.inputs[0]->as<const std::byte>(), at_x + p * x.strides[x.strides.size() - 1]) *
          load_weight(arguments.inputs[1]->as<const std::byte>(), column * weight.strides[0] + p * weight.strides[1]);
    }
    return sum;
  }

  void fill(const RunArguments& arguments) const {
    const TensorSpec& gradient = views_.gradient.spec;
    const LoadElement load = loader_of(gradient.dtype);
    auto* to = static_cast<double*>(arguments.workspace);
    TensorSpec rows = views_.a.spec;  // where each row of x begins
    rows.shape[rows.shape.size() - 1] = 1;
    Walk<2> walk(gradient.shape, gradient, rows);
    const std::int64_t columns = gradient.shape.back();
    for (std::int64_t i = 0; walk.more(); ++i, walk.next()) {
      const double g = load(data_of(arguments, views_.gradient), walk.offset(0));
      to[i] = slope_ == nullptr ? g : slope_(sum_before(arguments, walk.offset(1), i % columns), g);
    }
  }

  void add_bias(const RunArguments& arguments) const {
    const auto output = gradient_of(problem_, 2);
    if (!output) return;
    const auto* from = static_cast<const double*>(arguments.workspace);
    const std::int64_t columns = before_.spec.shape.back(), count = element_count(before_.spec);
    const TensorSpec& to = problem_.outputs[*output];
    for (std::int64_t j = 0; j < columns; ++j) {
      double sum = 0;
      for (std::int64_t i = j; i < count; i += columns) sum += from[i];
      storer_of(to.dtype)(arguments.outputs[*output]->as<std::byte>(), j * to.strides[0], sum);
    }
  }

  Problem problem_;
  GradientViews views_;
  Slope slope_;
  StageTensor before_;
  std::vector<SumOfProducts> sums_;
};

}  // namespace

std::unique_ptr<const Plan> prepare_product_backward_reference(const Problem& problem) {
  if (problem.op == OpId::linear) return std::make_unique<LinearBackwardPlan>(problem);
  return std::make_unique<ProductBackwardPlan>(problem);
}

}  // namespace xpuruntime::cpu
