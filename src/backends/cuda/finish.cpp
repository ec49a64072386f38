#include "backends/cuda/finish.h"

#include <algorithm>

namespace xpuruntime::cuda {
namespace {

Activation activation_of(std::string_view name) {
  if (name == "relu") return Activation::relu;
  if (name == "gelu") return Activation::gelu;
  return name == "silu" ? Activation::silu : Activation::none;
}

}  // namespace

Verdict scalars_fit(const Problem& problem, const DeviceProfile&) {
  const bool fit = problem.inputs[0].dtype == DataType::float64 || has_float_scalars(problem);
  return fit ? Verdict::yes() : Verdict::no("alpha or beta does not fit in f32");
}

Verdict has_one_batch_stride(const MatmulShape& shape) {
  return shape.batch_dims <= 1 ? Verdict::yes() : Verdict::no("one stride does not walk the batch");
}

TensorSpec broadcast_c(const Problem& problem) {
  const TensorSpec& c = problem.inputs[2];
  const Dims& shape = problem.outputs[0].shape;
  Dims strides = Dims::filled(shape.size(), 0);
  const std::size_t missing = shape.size() - c.shape.size();
  for (std::size_t i = missing; i < shape.size(); ++i) {
    strides[i] = c.shape[i - missing] == 1 ? 0 : c.strides[i - missing];
  }
  return make_spec(c.dtype, shape, strides, c.alignment);
}

Finish finish_of(const Problem& problem) {
  const bool linear = problem.op == OpId::linear;
  const MatmulShape shape = linear ? product_shape(problem) : matmul_shape(problem);
  const Dims& extents = problem.outputs[0].shape;
  Finish finish;
  finish.rank = static_cast<int>(extents.size());
  std::copy(extents.begin(), extents.end(), finish.extent);
  finish.rows = shape.m;
  finish.columns = shape.n;
  if (linear) finish.activation = activation_of(problem.attributes.choice("activation"));
  if (!linear) finish.alpha = problem.attributes.real("alpha");
  if (has_input(problem.inputs, 2)) finish.beta = linear ? 1 : problem.attributes.real("beta");
  if (finish.beta != 0) {
    const TensorSpec c = broadcast_c(problem);
    finish.c = c.dtype;
    std::copy(c.strides.begin(), c.strides.end(), finish.c_strides);
  }
  for (std::size_t side : {0, 1}) {
    finish.scaled[side] = has_input(problem.inputs, 3 + side);
    if (!finish.scaled[side]) continue;
    const TensorSpec& scale = problem.inputs[3 + side];
    finish.scale_strides[side] = element_count(scale) == 1 ? 0 : scale.strides[0];
  }
  return finish;
}

FinishLaunch finish_launch(const Problem& problem, DataType sums, bool in_place) {
  const TensorSpec& output = problem.outputs[0];
  FinishLaunch launch{finish_of(problem), {}, sums, output.dtype, in_place};
  std::copy(output.strides.begin(), output.strides.end(), launch.strides);
  return launch;
}

}  // namespace xpuruntime::cuda
