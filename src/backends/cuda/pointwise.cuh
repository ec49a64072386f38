#pragma once

#include <type_traits>

#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/finish.cuh"

// Functions of one element or two, and comparisons, each written once: for float and double, or for integers that wrap.
// Kernels of these choose the op by a switch after they have loaded.

namespace xpuruntime::cuda {

/// The ops of a kernel. `call` gives the one asked for as a constant.
template <OpId... ops>
struct Ops {
  static constexpr bool contain(OpId op) { return ((op == ops) || ...); }

  template <class Use>
  __device__ static void call(OpId op, Use use) {
    static_cast<void>(((op == ops && (use(std::integral_constant<OpId, ops>{}), true)) || ...));
  }
};

/// NaN wins over every number, and -0 is below +0.
template <class Real>
__device__ inline Real larger(Real a, Real b) {
  if constexpr (std::is_floating_point_v<Real>) {
    if (a == b) return signbit(a) ? b : a;
    return a > b || isnan(a) ? a : b;
  } else {
    return a > b ? a : b;
  }
}
template <class Real>
__device__ inline Real smaller(Real a, Real b) {
  if constexpr (std::is_floating_point_v<Real>) {
    return -larger(-a, -b);
  } else {
    return a < b ? a : b;
  }
}

template <class Real>
__device__ inline Real between_0_and_1(Real x) {
  return x < 0 ? Real(0) : x > 1 ? Real(1) : x;
}

/// Called: inlined for every element of a vector these would be most of the backend's code.
template <class Real>
__device__ __noinline__ Real library_function(OpId op, Real a, Real b) {
  switch (op) {
    case OpId::tan:
      return tan(a);
    case OpId::asin:
      return asin(a);
    case OpId::acos:
      return acos(a);
    case OpId::atan:
      return atan(a);
    case OpId::sinh:
      return sinh(a);
    case OpId::cosh:
      return cosh(a);
    case OpId::asinh:
      return asinh(a);
    case OpId::acosh:
      return acosh(a);
    case OpId::atanh:
      return atanh(a);
    case OpId::pow:
      return pow(a, b);
    default:
      return fmod(a, b);
  }
}

/// In float or double.
template <OpId op, class Real>
__device__ inline Real real_result(Real a, Real b, const PointwiseLaunch& p) {
  if constexpr (op == OpId::abs) {
    return fabs(a);
  } else if constexpr (op == OpId::neg) {
    return -a;
  } else if constexpr (op == OpId::sign) {
    return a > 0 ? Real(1) : a < 0 ? Real(-1) : a;
  } else if constexpr (op == OpId::floor) {
    return floor(a);
  } else if constexpr (op == OpId::ceil) {
    return ceil(a);
  } else if constexpr (op == OpId::round) {
    return rint(a);
  } else if constexpr (op == OpId::reciprocal) {
    return 1 / a;
  } else if constexpr (op == OpId::erf) {
    return erf(a);
  } else if constexpr (op == OpId::sin) {
    return sin(a);
  } else if constexpr (op == OpId::cos) {
    return cos(a);
  } else if constexpr (op == OpId::softplus) {
    return log1p(exp(-fabs(a))) + (a > 0 ? a : Real(0));
  } else if constexpr (op == OpId::clip) {
    return smaller(larger(a, static_cast<Real>(p.first)), static_cast<Real>(p.second));
  } else if constexpr (op == OpId::leaky_relu) {
    return a < 0 ? a * static_cast<Real>(p.first) : a;
  } else if constexpr (op == OpId::elu) {
    return a < 0 ? static_cast<Real>(p.first) * expm1(a) : a;
  } else if constexpr (op == OpId::hard_sigmoid) {
    return between_0_and_1(static_cast<Real>(p.first) * a + static_cast<Real>(p.second));
  } else if constexpr (op == OpId::hard_swish) {
    return a * between_0_and_1(a / 6 + Real(0.5));
  } else if constexpr (op == OpId::maximum) {
    return larger(a, b);
  } else if constexpr (op == OpId::minimum) {
    return smaller(a, b);
  } else if constexpr (op == OpId::prelu) {
    return a < 0 ? a * b : a;
  } else if constexpr (op == OpId::pow) {
    return b == 2 ? a * a : library_function(op, a, b);
  } else if constexpr (op == OpId::remainder) {
    const Real left = library_function(OpId::fmod, a, b);
    return left != 0 && (left < 0) != (b < 0) ? left + b : left;
  } else if constexpr (op == OpId::relu) {
    return a <= 0 ? Real(0) : a;  // NaN stays
  } else if constexpr (op == OpId::gelu) {
    // Both forms without the sum that loses the digits of the negative tail.
    if (p.approximate) return a / (1 + exp(Real(-1.59576912160573071) * (a + Real(0.044715) * a * a * a)));
    return Real(0.5) * a * erfc(a * Real(-0.70710678118654752));
  } else if constexpr (op == OpId::silu) {
    return a / (1 + exp(-a));
  } else if constexpr (op == OpId::sigmoid) {
    return 1 / (1 + exp(-a));
  } else if constexpr (op == OpId::tanh) {
    return tanh(a);
  } else if constexpr (op == OpId::log) {
    return log(a);
  } else if constexpr (op == OpId::exp) {
    return exp(a);
  } else if constexpr (op == OpId::sqrt) {
    return sqrt(a);
  } else if constexpr (op == OpId::add) {
    return a + b;
  } else if constexpr (op == OpId::sub) {
    return a - b;
  } else if constexpr (op == OpId::mul) {
    return a * b;
  } else if constexpr (op == OpId::div) {
    return a / b;
  } else {
    return library_function(op, a, b);
  }
}

/// Called, as library_function is. No quotient overflows but that by -1.
template <class Whole>
__device__ __noinline__ Whole long_whole_result(OpId op, Whole a, Whole b) {
  using Bits = std::make_unsigned_t<Whole>;
  if (op == OpId::pow) {
    if (b < 0) {  // a fraction is cut off
      if (a != 1 && a != -1) return 0;
      return b % 2 == 0 ? 1 : a;
    }
    Bits result = 1;
    for (Bits factor = static_cast<Bits>(a); b != 0; b >>= 1, factor *= factor) {
      if (b % 2 != 0) result *= factor;
    }
    return static_cast<Whole>(result);
  }
  if (b == -1) return op == OpId::trunc_div ? static_cast<Whole>(0 - static_cast<Bits>(a)) : 0;
  if (b == 0) return 0;
  if (op == OpId::trunc_div) return a / b;
  const Whole left = a % b;
  return op == OpId::remainder && left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

/// Of integers in 32 or 64 bits, of which the caller keeps the low ones.
template <OpId op, class Whole>
__device__ inline Whole whole_result(Whole a, Whole b, const PointwiseLaunch& p) {
  using Bits = std::make_unsigned_t<Whole>;
  constexpr int bits = 8 * static_cast<int>(sizeof(Whole));
  const Bits x = static_cast<Bits>(a), y = static_cast<Bits>(b);
  if constexpr (op == OpId::abs) {
    return a < 0 ? static_cast<Whole>(0 - x) : a;
  } else if constexpr (op == OpId::neg) {
    return static_cast<Whole>(0 - x);
  } else if constexpr (op == OpId::sign) {
    return static_cast<Whole>((a > 0) - (a < 0));
  } else if constexpr (op == OpId::clip) {
    return static_cast<Whole>(smaller(larger<std::int64_t>(a, p.low), p.high));
  } else if constexpr (op == OpId::relu) {
    return a < 0 ? 0 : a;
  } else if constexpr (op == OpId::logical_not) {
    return a == 0;
  } else if constexpr (op == OpId::bitwise_not) {
    return ~a;
  } else if constexpr (op == OpId::maximum) {
    return larger(a, b);
  } else if constexpr (op == OpId::minimum) {
    return smaller(a, b);
  } else if constexpr (op == OpId::bitwise_and || op == OpId::logical_and) {
    return a & b;
  } else if constexpr (op == OpId::bitwise_or || op == OpId::logical_or) {
    return a | b;
  } else if constexpr (op == OpId::bitwise_xor || op == OpId::logical_xor) {
    return a ^ b;
  } else if constexpr (op == OpId::shift_left) {
    return b < 0 || b >= bits ? 0 : static_cast<Whole>(x << y);
  } else if constexpr (op == OpId::shift_right) {
    return a >> (b < 0 || b >= bits ? bits - 1 : b);
  } else if constexpr (op == OpId::add) {
    return static_cast<Whole>(x + y);
  } else if constexpr (op == OpId::sub) {
    return static_cast<Whole>(x - y);
  } else if constexpr (op == OpId::mul) {
    return static_cast<Whole>(x * y);
  } else {
    return long_whole_result(op, a, b);
  }
}

/// Comparisons of two, and questions about one.
template <OpId op, class Number>
__device__ inline bool test_result(Number a, Number b) {
  if constexpr (op == OpId::equal) {
    return a == b;
  } else if constexpr (op == OpId::not_equal) {
    return a != b;
  } else if constexpr (op == OpId::less) {
    return a < b;
  } else if constexpr (op == OpId::less_equal) {
    return a <= b;
  } else if constexpr (op == OpId::greater) {
    return a > b;
  } else if constexpr (op == OpId::greater_equal) {
    return a >= b;
  } else if constexpr (op == OpId::isnan) {
    return a != a;
  } else {
    static_assert(op == OpId::isinf);
    return fabs(a) == Number(HUGE_VAL);
  }
}

template <OpId op>
inline constexpr bool is_test = op >= OpId::isnan&& op <= OpId::isinf || op >= OpId::equal&& op <= OpId::greater_equal;

/// Functions are F::apply(launch, a, b, out) of arrays. Vectors are 16 bytes of the inputs, one for each thread.
/// Registers for three quarters of the threads that a multiprocessor may have.
template <class F>
__global__ void __launch_bounds__(run_threads, 12) by_points(const PointwiseLaunch p, const Pointers x) {
  wait_for_previous();
  using T = typename F::Input;
  using R = typename F::Output;
  constexpr int width = 16 / static_cast<int>(sizeof(T));
  const bool two = p.inputs == 2;
  const int last = p.shape.rank - 1;
  const std::int64_t step = p.vectors ? 1 : thread_count();
#pragma unroll 1
  for (std::int64_t i = thread_index() * (p.vectors ? width : 1); i < p.shape.count; i += step) {
    const Offsets at = offsets_in(p.shape, i);
    R* const to = static_cast<R*>(x.output) + at.output;
    if (p.vectors && i + width <= p.shape.count) {
      const Vector<T> a = load_operand<T>(x.inputs[0], at.first, p.shape.strides[0][last] == 0);
      Vector<T> b = {};
      if (two) b = load_operand<T>(x.inputs[1], at.second, p.shape.strides[1][last] == 0);
      Pack<R, width> out;
      F::apply(p, a.values, b.values, out.values);
      *reinterpret_cast<Pack<R, width>*>(to) = out;
      return;
    }
    const T a[1] = {static_cast<const T*>(x.inputs[0])[at.first]};
    T b[1] = {};
    if (two) b[0] = static_cast<const T*>(x.inputs[1])[at.second];
    R out[1];
    F::apply(p, a, b, out);
    *to = out[0];
  }
}

template <class F>
cudaError_t launch_points(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  const unsigned blocks =
      launch.vectors ? blocks_of_vectors<typename F::Input>(count, run_threads) : blocks_for(count, run_threads);
  return queue_overlapping(by_points<F>, blocks, run_threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
