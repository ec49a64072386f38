#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

struct Relu {
  __device__ float operator()(float x) const { return x <= 0 ? 0 : x; }  // NaN stays
};
/// For 16 bits max(x, 0) - u q with u = |x| and q = erfc(u / sqrt(2)) / 2, which is 2 to the power of a polynomial that
/// was fitted to its logarithm: off by less than 11 2^-24 |x|, and where u < 8 by less than 2^-9 of u q.
template <class T>
struct Gelu {
  __device__ float operator()(float x) const {
    if constexpr (sizeof(T) == 4) return 0.5f * x * (1 + erff(x * 0.70710678f));
    const float u = fminf(fabsf(x), 13.5f);  // q is 0 from here on
    float power = fmaf(-1.28417514e-06f, u, 5.03674419e-05f);
    power = fmaf(power, u, -0.000844655675f);
    power = fmaf(power, u, 0.00820040796f);
    power = fmaf(power, u, -0.0534327291f);
    power = fmaf(power, u, -0.45886299f);
    power = fmaf(power, u, -1.15114546f);
    power = fmaf(power, u, -1);
    const float positive = x * (x > 0 ? 1.0f : 0.0f);  // NaN stays, and -infinity becomes it, as in f32
    return fmaf(-u, fast_exp2(power), positive);
  }
};
template <class T>
struct GeluTanh {  // (1 + tanh(y)) / 2 is 1 / (1 + exp(-2y))
  __device__ float operator()(float x) const {
    return divided_by_1_plus_exp<T>(x, -1.59576912f * fmaf(0.044715f * x * x, x, x));
  }
};
template <class T>
struct Silu {
  __device__ float operator()(float x) const { return divided_by_1_plus_exp<T>(x, -x); }
};
template <class T>
struct Sigmoid {
  __device__ float operator()(float x) const { return divided_by_1_plus_exp<T>(1, -x); }
};
struct Tanh {
  __device__ float operator()(float x) const { return tanhf(x); }
};
struct Log {
  __device__ float operator()(float x) const { return logf(x); }
};
struct Exp {
  __device__ float operator()(float x) const { return expf(x); }
};
struct Sqrt {
  __device__ float operator()(float x) const { return sqrtf(x); }
};

struct Unary {
  static constexpr int inputs = 1;
  static constexpr ElementOp first = ElementOp::relu, last = ElementOp::sqrt;

  template <class F, class T, int count>
  __device__ static void each(T (&values)[count]) {
#pragma unroll
    for (T& value : values) value = from_float<T>(F{}(to_float(value)));
  }

  template <class T, int count>
  __device__ static void apply(ElementOp op, T (&a)[count], const T (&)[count]) {
    switch (op) {
      case ElementOp::relu:
        return each<Relu>(a);
      case ElementOp::gelu:
        return each<Gelu<T>>(a);
      case ElementOp::gelu_tanh:
        return each<GeluTanh<T>>(a);
      case ElementOp::silu:
        return each<Silu<T>>(a);
      case ElementOp::sigmoid:
        return each<Sigmoid<T>>(a);
      case ElementOp::tanh:
        return each<Tanh>(a);
      case ElementOp::log:
        return each<Log>(a);
      case ElementOp::exp:
        return each<Exp>(a);
      default:
        return each<Sqrt>(a);
    }
  }
};

}  // namespace

cudaError_t launch_unary(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_type(launch.dtype,
                   [&](auto element) { return launch_elements<decltype(element), Unary>(launch, pointers, stream); });
}

}  // namespace xpuruntime::cuda
