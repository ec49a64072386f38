#include "backends/cuda/pointwise.cuh"

namespace xpuruntime::cuda {
namespace {

using RealOps = Ops<OpId::abs, OpId::neg, OpId::sign, OpId::floor, OpId::ceil, OpId::round, OpId::reciprocal, OpId::erf,
                    OpId::sin, OpId::cos, OpId::tan, OpId::asin, OpId::acos, OpId::atan, OpId::sinh, OpId::cosh,
                    OpId::asinh, OpId::acosh, OpId::atanh, OpId::softplus, OpId::clip, OpId::leaky_relu, OpId::elu,
                    OpId::hard_sigmoid, OpId::hard_swish, OpId::maximum, OpId::minimum, OpId::prelu, OpId::pow,
                    OpId::remainder, OpId::fmod, OpId::relu, OpId::gelu, OpId::silu, OpId::sigmoid, OpId::tanh,
                    OpId::log, OpId::exp, OpId::sqrt, OpId::add, OpId::sub, OpId::mul, OpId::div>;
using RealTests = Ops<OpId::isnan, OpId::isinf, OpId::equal, OpId::not_equal, OpId::less, OpId::less_equal,
                      OpId::greater, OpId::greater_equal>;
using IntegerOps =
    Ops<OpId::abs, OpId::neg, OpId::sign, OpId::clip, OpId::relu, OpId::logical_not, OpId::bitwise_not, OpId::maximum,
        OpId::minimum, OpId::pow, OpId::remainder, OpId::fmod, OpId::trunc_div, OpId::bitwise_and, OpId::bitwise_or,
        OpId::bitwise_xor, OpId::shift_left, OpId::shift_right, OpId::add, OpId::sub, OpId::mul>;
using IntegerTests =
    Ops<OpId::equal, OpId::not_equal, OpId::less, OpId::less_equal, OpId::greater, OpId::greater_equal>;

__device__ inline double result_of(const PointwiseLaunch& p, double a, double b) {
  double result = 0;
  RealOps::call(p.op, [&](auto op) { result = real_result<decltype(op)::value>(a, b, p); });
  RealTests::call(p.op, [&](auto op) { result = test_result<decltype(op)::value>(a, b); });
  return result;
}

__device__ inline std::int64_t result_of(const PointwiseLaunch& p, std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  IntegerOps::call(p.op, [&](auto op) { result = whole_result<decltype(op)::value>(a, b, p); });
  IntegerTests::call(p.op, [&](auto op) { result = test_result<decltype(op)::value>(a, b); });
  return result;
}

template <class Number>
__global__ void __launch_bounds__(element_threads) reference_points(const PointwiseLaunch p, const Pointers x) {
  wait_for_previous();
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    const Number a = load_as<Number>(x.inputs[0], p.dtypes[0], at.first);
    const Number b = p.inputs == 2 ? load_as<Number>(x.inputs[1], p.dtypes[1], at.second) : Number(0);
    store_as(x.output, p.output, at.output, result_of(p, a, b));
  }
}

}  // namespace

cudaError_t launch_reference(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const bool real = launch.dtypes[0] < DataType::int64 || (launch.inputs == 2 && launch.dtypes[1] < DataType::int64);
  return queue_overlapping(real ? reference_points<double> : reference_points<std::int64_t>,
                           blocks_for(launch.shape.count, element_threads), element_threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
