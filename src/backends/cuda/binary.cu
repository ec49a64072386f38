#include <type_traits>

#include "backends/cuda/elementwise.cuh"

namespace xpuruntime::cuda {
namespace {

// 16-bit floats are computed in float32, which holds any of these results closely enough that rounding it again is
// rounding once. Integers wrap around: unsigned arithmetic, whose overflow has a meaning.
template <class T>
__device__ inline auto wide(T value) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<std::make_unsigned_t<T>>(value);
  } else if constexpr (std::is_same_v<T, double>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <class T, class Wide>
__device__ inline T narrow(Wide value) {
  if constexpr (std::is_integral_v<T> || std::is_same_v<T, double>) {
    return static_cast<T>(value);
  } else {
    return from_float<T>(value);
  }
}

template <class T>
inline constexpr bool is_short_float = !std::is_integral_v<T> && !std::is_same_v<T, double>;

struct Binary {
  static constexpr int inputs = 2;
  static constexpr ElementOp first = ElementOp::add, last = ElementOp::silu_mul;

  template <class T, int count, class F>
  __device__ static void each(T (&a)[count], const T (&b)[count], F function) {
#pragma unroll
    for (int i = 0; i < count; ++i) a[i] = narrow<T>(function(wide(a[i]), wide(b[i])));
  }

  template <class T, int count>
  __device__ static void apply(ElementOp op, T (&a)[count], const T (&b)[count]) {
    switch (op) {
      case ElementOp::sub:
        return each(a, b, [](auto x, auto y) { return x - y; });
      case ElementOp::mul:
        return each(a, b, [](auto x, auto y) { return x * y; });
      case ElementOp::div:
        if constexpr (!std::is_integral_v<T>) return each(a, b, [](auto x, auto y) { return x / y; });
        return;
      case ElementOp::silu_mul:
        if constexpr (is_short_float<T>)
          return each(a, b, [](float x, float y) { return divided_by_1_plus_exp<T>(x, -x) * y; });
        return;
      default:
        return each(a, b, [](auto x, auto y) { return x + y; });
    }
  }
};

}  // namespace

cudaError_t launch_binary(const ElementLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  switch (launch.dtype) {
    case DataType::float64:
      return launch_elements<double, Binary>(launch, pointers, stream);
    case DataType::int32:
      return launch_elements<std::int32_t, Binary>(launch, pointers, stream);
    case DataType::int64:
      return launch_elements<std::int64_t, Binary>(launch, pointers, stream);
    default:
      return with_type(launch.dtype, [&](auto element) {
        return launch_elements<decltype(element), Binary>(launch, pointers, stream);
      });
  }
}

}  // namespace xpuruntime::cuda
