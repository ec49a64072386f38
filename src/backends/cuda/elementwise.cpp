#include "backends/cuda/elementwise.h"

#include <algorithm>
#include <cmath>

#include "backends/cuda/kernels.h"
#include "backends/cuda/launch_plan.h"
#include "xpuruntime/core/float_formats.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cuda {
namespace {

std::int64_t broadcast_stride(const TensorSpec& spec, std::size_t dim, std::size_t rank) {
  const std::size_t missing = rank - spec.shape.size();
  if (dim < missing || spec.shape[dim - missing] == 1) return 0;
  return spec.strides[dim - missing];
}

struct OneDim {
  std::int64_t extent = 1;
  std::int64_t strides[3] = {};
  std::int64_t third = 0;
};

/// Joins the dim to the one before it where every operand walks both with one stride.
void append(ElementwiseShape& shape, std::int64_t (&third)[8], const OneDim& dim) {
  const int last = shape.rank - 1;
  bool joins = last >= 0 && third[last] == dim.third * dim.extent;
  for (int i = 0; joins && i < 3; ++i) joins = shape.strides[i][last] == dim.strides[i] * dim.extent;
  const int slot = joins ? last : shape.rank++;
  shape.extent[slot] = joins ? shape.extent[slot] * dim.extent : dim.extent;
  for (int i = 0; i < 3; ++i) shape.strides[i][slot] = dim.strides[i];
  third[slot] = dim.third;
}

bool starts_on_vectors(const Problem& problem) {
  const auto starts = [](const TensorSpec& spec) { return spec.alignment >= 16; };
  return std::all_of(problem.inputs.begin(), problem.inputs.end(), starts) && starts(problem.outputs[0]);
}

/// silu_mul of one input, with the halves of its last dim as two.
Problem with_halves(const Problem& problem, std::int64_t between) {
  const TensorSpec& whole = problem.inputs[0];
  const std::uint8_t alignment = between % 16 == 0 ? whole.alignment : std::uint8_t{1};
  const TensorSpec half = make_spec(whole.dtype, problem.outputs[0].shape, whole.strides, alignment);
  Problem out = problem;
  out.inputs = {half, half};
  return out;
}

bool is_one_run(const ElementwiseShape& shape, std::size_t inputs) {
  return shape.rank == 1 && shape.strides[0][0] == 1 && shape.strides[2][0] == 1 &&
         (inputs == 1 || shape.strides[1][0] == 1);
}

/// With the first input alone: the others are not read element by element.
Problem with_one_input(const Problem& problem) {
  Problem out = problem;
  out.inputs.resize(1);
  return out;
}

Verdict keeps_dtype(const Problem& problem, const DeviceProfile&) {
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", problem.inputs[0].dtype);
}

ElementOp element_op(const Problem& problem) {
  switch (problem.op) {
    case OpId::add:
      return ElementOp::add;
    case OpId::sub:
      return ElementOp::sub;
    case OpId::mul:
      return ElementOp::mul;
    case OpId::div:
      return ElementOp::div;
    case OpId::silu_mul:
      return ElementOp::silu_mul;
    case OpId::relu:
      return ElementOp::relu;
    case OpId::gelu:
      return problem.attributes.choice("approximate") == "tanh" ? ElementOp::gelu_tanh : ElementOp::gelu;
    case OpId::silu:
      return ElementOp::silu;
    case OpId::sigmoid:
      return ElementOp::sigmoid;
    case OpId::tanh:
      return ElementOp::tanh;
    case OpId::log:
      return ElementOp::log;
    case OpId::exp:
      return ElementOp::exp;
    default:
      return ElementOp::sqrt;
  }
}

/// Whether products with the inverse are rounded to the bits of the quotients: for every significand, as powers of two
/// change nothing, and for every number too small for that.
bool products_are_quotients(DataType dtype, float share, float inverse) {
  const auto alike = [&](int significand_bits, double (*decode)(std::uint16_t), std::uint16_t (*encode)(double)) {
    for (int step = 0; step < 2 << significand_bits; ++step) {
      const int exponent = step >> significand_bits == 0 ? 0 : 15;
      const int fraction = step & ((1 << significand_bits) - 1);
      const auto x = static_cast<float>(decode(static_cast<std::uint16_t>(exponent << significand_bits | fraction)));
      if (encode(static_cast<double>(x * inverse)) != encode(static_cast<double>(x / share))) return false;
    }
    return true;
  };
  if (dtype == DataType::bfloat16) return alike(7, decode_bfloat16, encode_bfloat16);
  return dtype == DataType::float16 && alike(10, decode_float16, encode_float16);
}

}  // namespace

ElementwiseShape joint_shape(std::initializer_list<const TensorSpec*> inputs, const TensorSpec& output, bool row_major,
                             std::int64_t* third) {
  const std::size_t rank = output.shape.size();
  std::int64_t third_strides[8] = {};
  ElementwiseShape shape;
  shape.count = element_count(output);
  if (shape.count == 0) return shape;
  std::vector<OneDim> dims;
  for (std::size_t d = 0; d < rank; ++d) {
    if (output.shape[d] == 1) continue;
    OneDim dim{output.shape[d], {}};
    std::int64_t* const strides[] = {&dim.strides[0], &dim.strides[1], &dim.third};
    int operand = 0;
    for (const TensorSpec* input : inputs) *strides[operand++] = broadcast_stride(*input, d, rank);
    dim.strides[2] = output.strides[d];
    dims.push_back(dim);
  }
  if (!row_major) {
    std::stable_sort(dims.begin(), dims.end(),
                     [](const OneDim& a, const OneDim& b) { return a.strides[2] > b.strides[2]; });
  }
  for (const OneDim& dim : dims) append(shape, third_strides, dim);
  if (third != nullptr) std::copy(std::begin(third_strides), std::end(third_strides), third);
  return shape;
}

ElementwiseShape shape_of(const Problem& problem) {
  return problem.inputs.size() == 1 ? joint_shape({&problem.inputs[0]}, problem.outputs[0])
                                    : joint_shape({&problem.inputs[0], &problem.inputs[1]}, problem.outputs[0]);
}

bool has_vectors(const ElementwiseShape& shape, const Problem& problem, DataType dtype, const std::int64_t* third) {
  const auto width = static_cast<std::int64_t>(16 / size_of(dtype));
  const int last = shape.rank - 1;
  if (shape.rank == 0 || (last > 0 && shape.extent[last] % width != 0)) return false;
  const auto walks = [&](const TensorSpec& spec, const std::int64_t* strides, bool may_repeat) {
    if (strides[last] == 0) return may_repeat;
    if (strides[last] != 1 || spec.alignment < 16) return false;
    return std::all_of(strides, strides + last, [&](std::int64_t stride) { return stride % width == 0; });
  };
  const std::int64_t* const strides[] = {shape.strides[0], shape.strides[1], third};
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    if (!walks(problem.inputs[i], strides[i], true)) return false;
  }
  return walks(problem.outputs[0], shape.strides[2], false);
}

bool is_aligned_run(const ElementwiseShape& shape, const Problem& problem) {
  return is_one_run(shape, problem.inputs.size()) && starts_on_vectors(problem);
}

Verdict has_one_dtype(const Problem& problem, const DeviceProfile&) {
  const DataType first = problem.inputs[0].dtype;
  for (std::size_t i = 1; i < problem.inputs.size(); ++i) {
    const DataType dtype = problem.inputs[i].dtype;
    if (dtype == DataType::float32) continue;
    const Verdict same = is_same_dtype("input " + std::to_string(i), dtype, "f32 or the input's", first);
    if (!same.supported) return same;
  }
  return is_same_dtype("output 0", problem.outputs[0].dtype, "the input's", first);
}

Verdict supports_elementwise(const Problem& problem, const DeviceProfile& profile) {
  if (problem.inputs.size() == 2) {
    const DataType first = problem.inputs[0].dtype, second = problem.inputs[1].dtype;
    if (const Verdict same = is_same_dtype("input 1", second, "the input's", first); !same.supported) return same;
  }
  return first_refusal({supports_any, has_one_dtype}, problem, profile);
}

std::unique_ptr<const Plan> prepare_elementwise(const Problem& problem, const PrepareContext& context) {
  if (size_of(problem.outputs[0].dtype) == 1) return prepare_pointwise(problem, context);
  const TensorSpec &first = problem.inputs[0], &output = problem.outputs[0];
  const bool halves = problem.op == OpId::silu_mul && problem.inputs.size() == 1;
  const std::int64_t between =
      halves ? output.shape.back() * first.strides.back() * static_cast<std::int64_t>(size_of(first.dtype)) : 0;
  const Problem operands = halves ? with_halves(problem, between) : problem;
  ElementLaunch launch{shape_of(operands), element_op(problem), output.dtype};
  launch.vectors = has_vectors(launch.shape, operands, output.dtype);
  launch.shape.contiguous = is_aligned_run(launch.shape, operands);
  launch.between = between;
  return std::make_unique<LaunchPlan<ElementLaunch>>("elementwise", context.device, launch);
}

cudaError_t launch(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.shape.count == 0) return cudaSuccess;
  if (launch.op > ElementOp::silu_mul) return launch_unary(launch, pointers, stream);
  Pointers operands = pointers;
  if (operands.inputs[1] == nullptr) {  // halves of one input
    operands.inputs[1] = static_cast<const std::byte*>(pointers.inputs[0]) + launch.between;
  }
  return launch_binary(launch, operands, stream);
}

std::unique_ptr<const Plan> prepare_cast(const Problem& problem, const PrepareContext& context) {
  CastLaunch launch{shape_of(problem), problem.inputs[0].dtype, problem.outputs[0].dtype};
  const bool one_run = launch.shape.rank == 0 || is_one_run(launch.shape, 1);
  launch.shape.contiguous = one_run && starts_on_vectors(problem);
  return std::make_unique<LaunchPlan<CastLaunch>>("cast elementwise", context.device, launch);
}

Verdict supports_dropout(const Problem& problem, const DeviceProfile& profile) {
  return first_refusal({supports_any, keeps_dtype}, problem, profile);
}

std::unique_ptr<const Plan> prepare_dropout(const Problem& problem, const PrepareContext& context) {
  const Problem elements = with_one_input(problem);
  DropoutLaunch launch{joint_shape({&problem.inputs[0]}, problem.outputs[0], true), problem.inputs[0].dtype};
  launch.vectors = has_vectors(launch.shape, elements, launch.dtype);
  launch.shape.contiguous = is_aligned_run(launch.shape, elements);
  set_seed(launch, static_cast<std::uint64_t>(problem.attributes.integer("seed")));
  if (problem.inputs.size() > 1) launch.seed_stride = problem.inputs[1].strides[0];
  if (problem.attributes.boolean("training")) {
    const double p = problem.attributes.real("p");
    launch.threshold = static_cast<std::uint64_t>(std::floor(p * 0x1p32));
    launch.kept_share = static_cast<float>(1 - p);
    launch.inverse = 1 / launch.kept_share;
    launch.multiplies = products_are_quotients(launch.dtype, launch.kept_share, launch.inverse);
  }
  return std::make_unique<LaunchPlan<DropoutLaunch>>("dropout elementwise", context.device, launch);
}

std::unique_ptr<const Plan> prepare_unscale(const Problem& problem, const PrepareContext& context) {
  const Problem elements = with_one_input(problem);
  UnscaleLaunch launch{shape_of(elements), problem.inputs[0].dtype};
  launch.shape.contiguous = is_aligned_run(launch.shape, elements);
  return std::make_unique<LaunchPlan<UnscaleLaunch>>("unscale elementwise", context.device, launch);
}

}  // namespace xpuruntime::cuda
