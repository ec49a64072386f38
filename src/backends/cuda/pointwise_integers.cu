#include "backends/cuda/pointwise.cuh"

namespace xpuruntime::cuda {
namespace {

using IntegerOps =
    Ops<OpId::abs, OpId::neg, OpId::sign, OpId::clip, OpId::logical_not, OpId::bitwise_not, OpId::maximum,
        OpId::minimum, OpId::pow, OpId::remainder, OpId::fmod, OpId::trunc_div, OpId::bitwise_and, OpId::bitwise_or,
        OpId::bitwise_xor, OpId::shift_left, OpId::shift_right, OpId::add, OpId::sub, OpId::mul>;

template <class T>
struct Integers {
  using Input = T;
  using Output = T;
  using Whole = std::conditional_t<sizeof(T) == 8, std::int64_t, std::int32_t>;

  template <int count>
  __device__ static void apply(const PointwiseLaunch& p, const T (&a)[count], const T (&b)[count], T (&out)[count]) {
    IntegerOps::call(p.op, [&](auto op) {
#pragma unroll
      for (int i = 0; i < count; ++i) {
        out[i] = static_cast<T>(whole_result<decltype(op)::value, Whole>(a[i], b[i], p));
      }
    });
  }
};

using Comparisons = Ops<OpId::equal, OpId::not_equal, OpId::less, OpId::less_equal, OpId::greater, OpId::greater_equal>;
using FloatTests = Ops<OpId::isnan, OpId::isinf, OpId::equal, OpId::not_equal, OpId::less, OpId::less_equal,
                       OpId::greater, OpId::greater_equal>;

template <class T>
__device__ inline auto comparable(T value) {
  if constexpr (std::is_integral_v<T>) {
    return value;
  } else {
    return to_float(value);
  }
}

template <class T, class List>
struct Tests {
  using Input = T;
  using Output = std::uint8_t;

  template <int count>
  __device__ static void apply(const PointwiseLaunch& p, const T (&a)[count], const T (&b)[count],
                               std::uint8_t (&out)[count]) {
    List::call(p.op, [&](auto op) {
#pragma unroll
      for (int i = 0; i < count; ++i) out[i] = test_result<decltype(op)::value>(comparable(a[i]), comparable(b[i]));
    });
  }
};

/// Booleans are bytes that hold 0 or 1.
template <class Use>
cudaError_t with_integer(DataType dtype, Use&& use) {
  switch (dtype) {
    case DataType::int64:
      return use(std::int64_t{});
    case DataType::int32:
      return use(std::int32_t{});
    case DataType::int8:
      return use(std::int8_t{});
    default:
      return use(std::uint8_t{});
  }
}

}  // namespace

cudaError_t launch_integers(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  return with_integer(launch.dtypes[0], [&](auto element) {
    return launch_points<Integers<decltype(element)>>(launch, pointers, stream);
  });
}

cudaError_t launch_tests(const PointwiseLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  if (launch.dtypes[0] >= DataType::int64) {
    return with_integer(launch.dtypes[0], [&](auto element) {
      return launch_points<Tests<decltype(element), Comparisons>>(launch, pointers, stream);
    });
  }
  return with_type(launch.dtypes[0], [&](auto element) {
    return launch_points<Tests<decltype(element), FloatTests>>(launch, pointers, stream);
  });
}

}  // namespace xpuruntime::cuda
