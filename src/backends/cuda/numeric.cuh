#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "xpuruntime/core/data_type.h"

// Element types on the device. Through double every pair of float types converts with one rounding.

namespace xpuruntime::cuda {

using bf16 = __nv_bfloat16;
using f16 = __half;

__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(f16 value) { return __half2float(value); }
__device__ inline float to_float(bf16 value) { return __bfloat162float(value); }

template <class T>
__device__ inline T from_float(float value);
template <>
__device__ inline float from_float<float>(float value) {
  return value;
}
template <>
__device__ inline f16 from_float<f16>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ inline bf16 from_float<bf16>(float value) {
  return __float2bfloat16_rn(value);
}

/// A binary format narrower than float, as core/float_formats.h describes them.
struct NarrowFormat {
  int exponent_bits;
  int mantissa_bits;
  bool has_infinity;  // false: OCP E4M3, whose only special value is NaN, all ones
};

__device__ inline NarrowFormat narrow_format(DataType dtype) {
  switch (dtype) {
    case DataType::float16:
      return {5, 10, true};
    case DataType::bfloat16:
      return {8, 7, true};
    case DataType::float8_e5m2:
      return {5, 2, true};
    default:
      return {4, 3, false};
  }
}

/// Rounds to nearest, ties to even, once. Too large becomes infinity, or NaN where there is none.
__device__ inline std::uint32_t encode(NarrowFormat format, double value) {
  const std::uint32_t sign_bit = 1u << (format.exponent_bits + format.mantissa_bits);
  const std::uint32_t sign = signbit(value) ? sign_bit : 0;
  const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  const std::uint32_t all_ones = sign_bit - 1;
  const std::uint32_t nan = format.has_infinity ? infinity | 1u << (format.mantissa_bits - 1) : all_ones;
  const std::uint32_t overflow = format.has_infinity ? infinity : nan;
  if (isnan(value)) return sign | nan;
  const double magnitude = fabs(value);
  if (magnitude == 0) return sign;
  if (isinf(magnitude)) return sign | overflow;

  const int min_exponent = 2 - (1 << (format.exponent_bits - 1));
  const int exponent = max(ilogb(magnitude), min_exponent);
  // In units of the last place the number is rounded as an integer; a carry moves up one exponent by itself.
  const auto units = static_cast<std::uint32_t>(rint(ldexp(magnitude, format.mantissa_bits - exponent)));
  const std::uint32_t bits = (static_cast<std::uint32_t>(exponent - min_exponent) << format.mantissa_bits) + units;
  return sign | (bits >= (format.has_infinity ? infinity : all_ones) ? overflow : bits);
}

__device__ inline double decode(NarrowFormat format, std::uint32_t bits) {
  const std::uint32_t sign_bit = 1u << (format.exponent_bits + format.mantissa_bits);
  const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  const std::uint32_t magnitude = bits & (sign_bit - 1);
  const double sign = (bits & sign_bit) ? -1.0 : 1.0;
  if (format.has_infinity ? magnitude > infinity : magnitude == sign_bit - 1) return nan("");
  if (format.has_infinity && magnitude == infinity) return sign * HUGE_VAL;
  const int min_exponent = 2 - (1 << (format.exponent_bits - 1));
  const int exponent = static_cast<int>(magnitude >> format.mantissa_bits);
  const std::uint32_t mantissa = magnitude & ((1u << format.mantissa_bits) - 1);
  const std::uint32_t significand = exponent == 0 ? mantissa : mantissa | 1u << format.mantissa_bits;
  return sign * ldexp(static_cast<double>(significand), min_exponent + max(exponent, 1) - 1 - format.mantissa_bits);
}

/// One element of any float type.
__device__ inline double load_double(const void* data, DataType dtype, std::int64_t index) {
  switch (dtype) {
    case DataType::float64:
      return static_cast<const double*>(data)[index];
    case DataType::float32:
    case DataType::tfloat32:
      return static_cast<const float*>(data)[index];
    case DataType::float16:
      return to_float(static_cast<const f16*>(data)[index]);
    case DataType::bfloat16:
      return to_float(static_cast<const bf16*>(data)[index]);
    default:
      return decode(narrow_format(dtype), static_cast<const std::uint8_t*>(data)[index]);
  }
}

__device__ inline void store_double(void* data, DataType dtype, std::int64_t index, double value) {
  switch (dtype) {
    case DataType::float64:
      static_cast<double*>(data)[index] = value;
      break;
    case DataType::float32:
    case DataType::tfloat32:
      static_cast<float*>(data)[index] = __double2float_rn(value);
      break;
    case DataType::float16:
    case DataType::bfloat16:
      static_cast<std::uint16_t*>(data)[index] = static_cast<std::uint16_t>(encode(narrow_format(dtype), value));
      break;
    default:
      static_cast<std::uint8_t*>(data)[index] = static_cast<std::uint8_t>(encode(narrow_format(dtype), value));
  }
}

/// One integer, signed, uint8 or a boolean.
__device__ inline std::int64_t load_index(const void* data, DataType dtype, std::int64_t at) {
  switch (dtype) {
    case DataType::int64:
      return static_cast<const std::int64_t*>(data)[at];
    case DataType::int32:
      return static_cast<const std::int32_t*>(data)[at];
    case DataType::int16:
      return static_cast<const std::int16_t*>(data)[at];
    case DataType::int8:
      return static_cast<const std::int8_t*>(data)[at];
    default:
      return static_cast<const std::uint8_t*>(data)[at];
  }
}

/// A float32 result in the output's type: float32, float16 or bfloat16.
__device__ inline void store_float(void* data, DataType dtype, std::int64_t index, float value) {
  if (dtype == DataType::float16) {
    static_cast<f16*>(data)[index] = from_float<f16>(value);
  } else if (dtype == DataType::bfloat16) {
    static_cast<bf16*>(data)[index] = from_float<bf16>(value);
  } else {
    static_cast<float*>(data)[index] = value;
  }
}

}  // namespace xpuruntime::cuda
