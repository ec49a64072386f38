#include <type_traits>

#include "backends/cuda/elementwise.cuh"
#include "backends/cuda/finish.cuh"

namespace xpuruntime::cuda {
namespace {

/// Among float32, float16 and bfloat16, where float32 holds every value and so there is one rounding.
template <class From, class To>
__global__ void __launch_bounds__(element_threads) cast_contiguous(const CastLaunch p, const Pointers x) {
  const From* from = static_cast<const From*>(x.inputs[0]);
  To* to = static_cast<To*>(x.output);
  const std::int64_t packs = p.shape.count / 8;
  for (std::int64_t i = thread_index(); i < packs; i += thread_count()) {
    const Pack<From> values = reinterpret_cast<const Pack<From>*>(from)[i];
    Pack<To> results;
#pragma unroll
    for (int j = 0; j < 8; ++j) results.values[j] = from_float<To>(to_float(values.values[j]));
    reinterpret_cast<Pack<To>*>(to)[i] = results;
  }
  const std::int64_t rest = packs * 8 + thread_index();
  if (rest < p.shape.count) to[rest] = from_float<To>(to_float(from[rest]));
}

/// Neighbours, as floats or 64-bit integers.
template <class From, class Number, int width>
__device__ inline void load_pack(const void* data, std::int64_t pack, Number (&out)[width]) {
  const Pack<From, width> values = static_cast<const Pack<From, width>*>(data)[pack];
#pragma unroll
  for (int i = 0; i < width; ++i) {
    if constexpr (std::is_integral_v<From>) {
      out[i] = values.values[i];
    } else {
      out[i] = to_float(values.values[i]);
    }
  }
}

template <int width>
__device__ inline void load_pack(const void* data, DataType dtype, std::int64_t pack, float (&out)[width]) {
  if (dtype == DataType::float16) return load_pack<f16>(data, pack, out);
  if (dtype == DataType::bfloat16) return load_pack<bf16>(data, pack, out);
  load_pack<float>(data, pack, out);
}

template <int width>
__device__ inline void load_pack(const void* data, DataType dtype, std::int64_t pack, std::int64_t (&out)[width]) {
  switch (dtype) {
    case DataType::int64:
      return load_pack<std::int64_t>(data, pack, out);
    case DataType::int32:
      return load_pack<std::int32_t>(data, pack, out);
    case DataType::int16:
      return load_pack<std::int16_t>(data, pack, out);
    case DataType::int8:
      return load_pack<std::int8_t>(data, pack, out);
    default:
      return load_pack<std::uint8_t>(data, pack, out);
  }
}

/// As a float that keeps whether anything was cut off in its last bit: 16 bits of it are then those of the integer,
/// rounded once.
__device__ inline float to_float_for_narrow(std::int64_t value) {
  const float cut = __ll2float_rz(value);
  return static_cast<std::int64_t>(cut) == value ? cut : __uint_as_float(__float_as_uint(cut) | 1);
}

template <class To>
__device__ inline To converted(std::int64_t value) {
  if constexpr (std::is_integral_v<To>) {
    return static_cast<To>(value);
  } else if constexpr (std::is_same_v<To, double>) {
    return static_cast<double>(value);
  } else if constexpr (std::is_same_v<To, float>) {
    return __ll2float_rn(value);
  } else {
    return from_float<To>(to_float_for_narrow(value));
  }
}

/// Floats are cut off and held within the integer type; NaN becomes 0.
template <class To>
__device__ inline To converted(float value) {
  if constexpr (std::is_same_v<To, double>) {
    return static_cast<double>(value);
  } else if constexpr (!std::is_integral_v<To>) {
    return from_float<To>(value);
  } else if constexpr (sizeof(To) == 8) {
    return isnan(value) ? 0 : __float2ll_rz(value);
  } else {  // the conversion holds within 32 bits
    const int whole = isnan(value) ? 0 : __float2int_rz(value);
    if constexpr (sizeof(To) == 4) {
      return whole;
    } else {
      constexpr int bits = 8 * sizeof(To), low = std::is_signed_v<To> ? -(1 << (bits - 1)) : 0;
      return static_cast<To>(min(max(whole, low), low + (1 << bits) - 1));
    }
  }
}

template <class To, class Number, int width>
__device__ inline void store_pack(void* data, std::int64_t pack, const Number (&values)[width]) {
  Pack<To, width> out;
#pragma unroll
  for (int i = 0; i < width; ++i) out.values[i] = converted<To>(values[i]);
  static_cast<Pack<To, width>*>(data)[pack] = out;
}

template <class Number, int width>
__device__ inline void store_pack(void* data, DataType dtype, std::int64_t pack, Number (&values)[width]) {
  switch (dtype) {
    case DataType::float64:
      return store_pack<double>(data, pack, values);
    case DataType::float16:
      return store_pack<f16>(data, pack, values);
    case DataType::bfloat16:
      return store_pack<bf16>(data, pack, values);
    case DataType::int64:
      return store_pack<std::int64_t>(data, pack, values);
    case DataType::int32:
      return store_pack<std::int32_t>(data, pack, values);
    case DataType::int16:
      return store_pack<std::int16_t>(data, pack, values);
    case DataType::int8:
      return store_pack<std::int8_t>(data, pack, values);
    case DataType::uint8:
      return store_pack<std::uint8_t>(data, pack, values);
    case DataType::boolean:
#pragma unroll
      for (Number& value : values) value = value != 0;
      return store_pack<std::uint8_t>(data, pack, values);
    default:
      return store_pack<float>(data, pack, values);
  }
}

/// From floats of at most 32 bits or from integers, to all but 8-bit floats. What a thread writes at once is at most 16
/// bytes of neighbours: of wider packs a warp would write parts of sectors.
template <class Number, int width>
__global__ void __launch_bounds__(element_threads) cast_packs(const CastLaunch p, const Pointers x) {
  const std::int64_t packs = p.shape.count / width;
  for (std::int64_t i = thread_index(); i < packs; i += thread_count()) {
    Number values[width];
    load_pack(x.inputs[0], p.from, i, values);
    store_pack(x.output, p.to, i, values);
  }
  const std::int64_t rest = packs * width + thread_index();
  if (rest < p.shape.count) convert(x.output, p.to, rest, x.inputs[0], p.from, rest);
}

/// Any pair of dtypes in any layout.
__global__ void __launch_bounds__(element_threads) cast_any(const CastLaunch p, const Pointers x) {
  for (std::int64_t i = thread_index(); i < p.shape.count; i += thread_count()) {
    const Offsets at = offsets_in(p.shape, i);
    convert(x.output, p.to, at.output, x.inputs[0], p.from, at.first);
  }
}

using Kernel = void (*)(CastLaunch, Pointers);

template <class From>
Kernel contiguous_kernel_from(DataType to) {
  switch (to) {
    case DataType::float32:
      return cast_contiguous<From, float>;
    case DataType::float16:
      return cast_contiguous<From, f16>;
    case DataType::bfloat16:
      return cast_contiguous<From, bf16>;
    default:
      return nullptr;
  }
}

bool is_8_bit_float(DataType dtype) { return dtype == DataType::float8_e4m3 || dtype == DataType::float8_e5m2; }

struct ByPacks {
  Kernel kernel = nullptr;  // null: elements are converted one by one
  int width = 8;
};

ByPacks contiguous_kernel(const CastLaunch& launch) {
  if (launch.from == DataType::float64 || is_8_bit_float(launch.from) || is_8_bit_float(launch.to)) return {};
  const bool is_integer = launch.from >= DataType::int64;
  if (size_of(launch.to) == 8) return {is_integer ? cast_packs<std::int64_t, 2> : cast_packs<float, 2>, 2};
  if (is_integer) return {cast_packs<std::int64_t, 8>};
  const Kernel among_floats = launch.from == DataType::float16    ? contiguous_kernel_from<f16>(launch.to)
                              : launch.from == DataType::bfloat16 ? contiguous_kernel_from<bf16>(launch.to)
                                                                  : contiguous_kernel_from<float>(launch.to);
  return {among_floats != nullptr ? among_floats : cast_packs<float, 8>};
}

}  // namespace

cudaError_t launch(const CastLaunch& launch, const Pointers& pointers, cudaStream_t stream) {
  const std::int64_t count = launch.shape.count;
  if (count == 0) return cudaSuccess;
  const ByPacks by_packs = launch.shape.contiguous ? contiguous_kernel(launch) : ByPacks();
  if (by_packs.kernel != nullptr) {
    const unsigned blocks = blocks_for((count + by_packs.width - 1) / by_packs.width, element_threads);
    return queue(by_packs.kernel, blocks, element_threads, launch, pointers, stream);
  }
  return queue(cast_any, blocks_for(count, element_threads), element_threads, launch, pointers, stream);
}

}  // namespace xpuruntime::cuda
