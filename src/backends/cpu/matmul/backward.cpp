#include "core/backward.h"

#include <algorithm>

#include "backends/cpu/base/activation.h"
#include "backends/cpu/base/stages.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/matmul/gradient_views.h"
#include "backends/cpu/matmul/kernels.h"
#include "backends/cpu/movement/kernels.h"
#include "backends/cpu/reduce/kernels.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

constexpr KernelSpec copies = {.prepare = prepare_copy_bytes};
constexpr KernelSpec slopes = {.prepare = prepare_unary_simd};

OpId activation_op(Activation activation) {
  if (activation == Activation::gelu) return OpId::gelu;
  return activation == Activation::silu ? OpId::silu : OpId::relu;
}

/// Writes the stages of one backward call by one kernel, or finds out why that kernel cannot do them.
class BackwardStages {
 public:
  BackwardStages(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile)
      : kernel_(kernel), problem_(problem), profile_(profile) {
    views_ = gradient_views(problem);
    if (problem.op == OpId::linear) take_off_activation();
    if (verdict_.supported && views_.has_da) {
      add_product(views_.gradient, transposed(views_.b), views_.da);
    }
    if (verdict_.supported && views_.has_db) {
      add_product(transposed(views_.a), views_.gradient, views_.db);
    }
    if (verdict_.supported && problem.op == OpId::linear && problem.inputs.size() > 3) add_bias();
    // Else another kernel does it all, and says so by its name.
    if (verdict_.supported && own_products_ == 0) verdict_ = refusal_;
  }

  const Verdict& verdict() const { return verdict_; }
  const Stages& stages() const { return stages_; }

 private:
  /// Makes the gradient that of the sums before the activation, which are computed once more.
  void take_off_activation() {
    const Activation activation = activation_of(problem_.attributes);
    if (activation == Activation::none) return;
    const StageTensor gradient = input_of(problem_, problem_.inputs.size() - 1);
    if (!fast_floats.contains(gradient.spec.dtype)) {
      verdict_ = refuse_dtype("the gradient", gradient.spec.dtype, to_string(fast_floats));
      return;
    }
    std::vector<StageTensor> inputs;
    for (std::size_t i = 0; i + 1 < problem_.inputs.size(); ++i) inputs.push_back(input_of(problem_, i));
    const StageTensor before = stages_.room(DataType::float32, gradient.spec.shape);
    if (!take(stage_problem(problem_, Attributes(OpId::linear), inputs, before), inputs, before)) return;
    // Kernels that multiply 16 bits alone need what goes into them rounded to that.
    const DataType dtype = gradient_dtype(gradient.spec);
    const StageTensor after = dtype == DataType::float32 ? before : stages_.room(dtype, gradient.spec.shape);
    const Attributes attributes(activation_op(activation));
    Problem slope =
        make_problem(attributes.op(), {before.spec, gradient.spec}, attributes, problem_.device, Direction::backward);
    set_outputs(slope, {after.spec});
    slope.limits = problem_.limits;
    stages_.add(slopes, slope, {before, gradient}, {after});
    Problem rest = problem_;
    rest.inputs.back() = after.spec;
    views_.gradient = after.seen_as(gradient_views(rest).gradient.spec);
  }

  /// f32, unless the kernel multiplies that with no operand of the call's dtypes.
  DataType gradient_dtype(const TensorSpec& gradient) const {
    const StageTensor wide = StageTensor{}.seen_as(make_spec(DataType::float32, views_.gradient.spec.shape));
    const StageTensor out =
        StageTensor{}.seen_as(make_spec(DataType::float32, product_shape(wide.spec, transposed(views_.b).spec)));
    const std::vector<StageTensor> inputs = {wide, transposed(views_.b)};
    const Problem problem = stage_problem(problem_, Attributes(OpId::matmul), inputs, out);
    return supports(problem).supported || packed_may_help() ? DataType::float32 : gradient.dtype;
  }

  static Dims product_shape(const TensorSpec& a, const TensorSpec& b) {
    Dims shape = a.shape;
    shape[shape.size() - 1] = b.shape.back();
    return shape;
  }

  Verdict supports(const Problem& problem) const { return kernel_.accepts(problem, profile_); }

  /// The gradient of the few-sided operand has no few side itself: it is an outer product.
  bool packed_may_help() const { return kernel_.supports == supports_product_skinny; }

  /// Adds the stage where the kernel takes it; else keeps its reason.
  bool take(const Problem& problem, const std::vector<StageTensor>& inputs, const StageTensor& out) {
    Verdict verdict = supports(problem);
    if (verdict.supported) {
      ++own_products_;
      stages_.add(kernel_, problem, inputs, {out});
      return true;
    }
    if (refusal_.supported) refusal_ = verdict;
    if (packed_may_help() && packed_product.accepts(problem, profile_).supported) {
      stages_.add(packed_product, problem, inputs, {out});
      return true;
    }
    verdict_ = std::move(verdict);
    return false;
  }

  static std::int64_t extent_of(const StageTensor& a, const StageTensor& b, std::size_t dim) {
    return a.spec.shape[dim] == 1 ? b.spec.shape[dim] : a.spec.shape[dim];
  }

  /// out = sum of a times b over the batch dims that out has not.
  void add_product(StageTensor a, StageTensor b, StageTensor out) {
    const std::size_t rank = std::max(a.spec.shape.size(), b.spec.shape.size());
    a = padded_to(a, rank);
    b = padded_to(b, rank);
    out = padded_to(out, rank);
    std::vector<std::int64_t> left;  // dims that must be summed afterwards
    for (std::size_t dim = rank - 2; dim-- > 0;) {
      const bool summed = out.spec.shape[dim] == 1 && extent_of(a, b, dim) != 1;
      if (summed && !join_summed(a, b, dim)) left.push_back(static_cast<std::int64_t>(dim));
    }
    if (left.empty()) return add_turned(a, b, out);
    Dims shape = out.spec.shape;
    for (const std::int64_t dim : left)
      shape[static_cast<std::size_t>(dim)] = extent_of(a, b, static_cast<std::size_t>(dim));
    const StageTensor parts = stages_.room(DataType::float32, shape);
    add_turned(a, b, parts);
    if (verdict_.supported) add_sum(parts, left, out, true);
  }

  /// Libraries want the output's columns side by side: where its rows are, its transpose is computed.
  void add_turned(const StageTensor& a, const StageTensor& b, const StageTensor& out) {
    const std::size_t last = out.spec.shape.size() - 1;
    const bool turn = out.spec.strides[last] != 1 && out.spec.strides[last - 1] == 1 && out.spec.shape[last] > 1;
    turn ? add_matrix(transposed(b), transposed(a), transposed(out)) : add_matrix(a, b, out);
  }

  /// As the operands lie, or with one of them copied into rows: some kernels want them along the sum.
  void add_matrix(const StageTensor& a, const StageTensor& b, const StageTensor& out) {
    const Attributes attributes(OpId::matmul);
    const auto product = [&](const StageTensor& x, const StageTensor& y) {
      return stage_problem(problem_, attributes, {x, y}, out);
    };
    const auto in_rows = [](const StageTensor& x) { return x.seen_as(make_spec(x.spec.dtype, x.spec.shape)); };
    const bool as_is = supports(product(a, b)).supported || packed_may_help();
    const bool a_copied = !as_is && supports(product(in_rows(a), b)).supported;
    const bool b_copied = !as_is && !a_copied && supports(product(a, in_rows(b))).supported;
    const StageTensor x = a_copied ? add_copy(a) : a, y = b_copied ? add_copy(b) : b;
    take(product(x, y), {x, y}, out);
  }

  StageTensor add_copy(const StageTensor& from) {
    const StageTensor to = stages_.room(from.spec.dtype, from.spec.shape);
    stages_.add(copies, stage_problem(problem_, Attributes(OpId::copy), {from}, to), {from}, {to});
    return to;
  }

  void add_sum(const StageTensor& from, const std::vector<std::int64_t>& dims, const StageTensor& to, bool keep) {
    const Attributes attributes = Attributes(OpId::reduce_sum).set_list("dim", dims).set("keepdim", keep);
    const Problem problem = stage_problem(problem_, attributes, {from}, to);
    stages_.add(reduction_for(problem), problem, {from}, {to});
  }

  void add_bias() {
    const auto output = gradient_of(problem_, 2);
    if (!output) return;
    std::vector<std::int64_t> rows;
    for (std::size_t i = 0; i + 1 < views_.gradient.spec.shape.size(); ++i)
      rows.push_back(static_cast<std::int64_t>(i));
    add_sum(views_.gradient, rows, output_of(problem_, *output), false);
  }

  const KernelSpec& kernel_;
  const Problem& problem_;
  const DeviceProfile& profile_;
  Verdict verdict_ = {};
  Verdict refusal_ = {};
  GradientViews views_ = {};
  Stages stages_ = {};
  int own_products_ = 0;
};

}  // namespace

Verdict supports_product_backward(const KernelSpec& kernel, const Problem& problem, const DeviceProfile& profile) {
  return BackwardStages(kernel, problem, profile).verdict();
}

std::uint64_t workspace_product_backward(const KernelSpec& kernel, const Problem& problem,
                                         const DeviceProfile& profile) {
  return BackwardStages(kernel, problem, profile).stages().workspace_bytes(profile);
}

std::unique_ptr<const Plan> prepare_product_backward(const KernelSpec& kernel, const Problem& problem,
                                                     const PrepareContext& context) {
  return BackwardStages(kernel, problem, context.profile).stages().prepare(context);
}

}  // namespace xpuruntime::cpu
