#include "backends/cuda/pointwise.cuh"

namespace xpuruntime::cuda {
namespace {

// In kernels apart from the long functions, whose registers they would pay for.
using ShortOps =
    Ops<OpId::abs, OpId::neg, OpId::sign, OpId::floor, OpId::ceil, OpId::round, OpId::reciprocal, OpId::clip,
        OpId::leaky_relu, OpId::hard_sigmoid, OpId::hard_swish, OpId::maximum, OpId::minimum, OpId::prelu>;
using LongOps =
    Ops<OpId::erf, OpId::sin, OpId::cos, OpId::tan, OpId::asin, OpId::acos, OpId::atan, OpId::sinh, OpId::cosh,
        OpId::asinh, OpId::acosh, OpId::atanh, OpId::softplus, OpId::elu, OpId::pow, OpId::remainder, OpId::fmod>;

template <class T, class List>
struct Floats {
  using Input = T;
  using Output = T;

  template <int count>
  __device__ static void apply(const PointwiseLaunch& p, const T (&a)[count], const T (&b)[count], T (&out)[count]) {
    List::call(p.op, [&](auto op) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        out[i] = from_float<T>(real_result<decltype(op)::value>(to_float(a[i]), to_float(b[i]), p));
      }
    });
  }
};

}  // namespace

cudaError_t launch_floats(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type(launch.dtypes[0], [&](auto element) {
    using T = decltype(element);
    return ShortOps::contain(launch.op) ? launch_points<Floats<T, ShortOps>>(launch, pointers, stream)
                                        : launch_points<Floats<T, LongOps>>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
