#pragma once

#include <type_traits>

#include "backends/cuda/launch.h"
#include "backends/cuda/numeric.cuh"

// Sums on their way to the output: floats in double or float, integers in 64 bits.

namespace xpuruntime::cuda {

__device__ inline bool is_integer(DataType dtype) { return dtype >= DataType::int64; }

template <class Number>
__device__ inline Number load_as(const void* data, DataType dtype, std::int64_t at) {
  if (is_integer(dtype)) return static_cast<Number>(load_index(data, dtype, at));
  if constexpr (std::is_same_v<Number, float>) {
    if (dtype == DataType::float32) return static_cast<const float*>(data)[at];
    if (dtype == DataType::float16) return to_float(static_cast<const f16*>(data)[at]);
    if (dtype == DataType::bfloat16) return to_float(static_cast<const bf16*>(data)[at]);
  }
  return static_cast<Number>(load_double(data, dtype, at));
}

/// Integers wrap.
__device__ inline void store_as(void* data, DataType dtype, std::int64_t at, std::int64_t value) {
  if (!is_integer(dtype)) return store_double(data, dtype, at, static_cast<double>(value));
  switch (dtype) {
    case DataType::int64:
      static_cast<std::int64_t*>(data)[at] = value;
      break;
    case DataType::int32:
      static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(value);
      break;
    case DataType::int16:
      static_cast<std::int16_t*>(data)[at] = static_cast<std::int16_t>(value);
      break;
    case DataType::boolean:
      static_cast<std::uint8_t*>(data)[at] = value != 0;
      break;
    default:
      static_cast<std::uint8_t*>(data)[at] = static_cast<std::uint8_t>(value);
  }
}

/// Cuts off what is behind the point; past the ends of the dtype its ends are taken, and 0 for NaN.
__device__ inline std::int64_t clamped(double value, DataType dtype) {
  const int bits = dtype == DataType::int64   ? 63
                   : dtype == DataType::int32 ? 31
                   : dtype == DataType::int16 ? 15
                   : dtype == DataType::int8  ? 7
                                              : 8;
  const double end = ldexp(1.0, bits);
  const double low = dtype == DataType::uint8 ? 0 : -end;
  if (isnan(value)) return 0;
  if (value >= end) return static_cast<std::int64_t>((std::uint64_t{1} << bits) - 1);
  return static_cast<std::int64_t>(value <= low ? low : value);
}

__device__ inline void store_as(void* data, DataType dtype, std::int64_t at, double value) {
  if (dtype == DataType::boolean) return store_as(data, dtype, at, std::int64_t{value != 0});
  if (is_integer(dtype)) return store_as(data, dtype, at, clamped(value, dtype));
  store_double(data, dtype, at, value);
}

__device__ inline void store_as(void* data, DataType dtype, std::int64_t at, float value) {
  if (dtype >= DataType::float32 && dtype <= DataType::bfloat16) return store_float(data, dtype, at, value);
  store_as(data, dtype, at, static_cast<double>(value));
}

/// For floats of at most 32 bits: what a double does not hold of the integer stands in the last bit of what it does, so
/// that rounding the double is rounding the integer, once.
__device__ inline double to_double_for_narrow(std::int64_t value) {
  const std::uint64_t bits = static_cast<std::uint64_t>(value), size = value < 0 ? 0 - bits : bits;
  constexpr std::uint64_t beyond = 0x7ff;
  if (size >> 53 == 0 || (size & beyond) == 0) return static_cast<double>(value);
  const auto held = static_cast<double>((size & ~beyond) | (beyond + 1));
  return value < 0 ? -held : held;
}

/// One element of any dtype to any other.
__device__ inline void convert(void* to, DataType to_dtype, std::int64_t to_index, const void* from,
                               DataType from_dtype, std::int64_t from_index) {
  if (!is_integer(from_dtype)) return store_as(to, to_dtype, to_index, load_double(from, from_dtype, from_index));
  const std::int64_t value = load_index(from, from_dtype, from_index);
  if (is_integer(to_dtype) || to_dtype == DataType::float64) return store_as(to, to_dtype, to_index, value);
  store_double(to, to_dtype, to_index, to_double_for_narrow(value));
}

__device__ inline double multiply_add(double sum, double a, double b) { return sum + a * b; }
__device__ inline float multiply_add(float sum, float a, float b) { return sum + a * b; }
__device__ inline std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) +
                                   static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}

template <class Number>
__device__ inline Number activate(Number x, Activation activation) {
  if (activation == Activation::relu) return x <= 0 ? 0 : x;  // NaN stays
  if constexpr (std::is_floating_point_v<Number>) {
    if (activation == Activation::gelu) return Number(0.5) * x * erfc(x * Number(-0.70710678118654752));
    if (activation == Activation::silu) return x / (1 + exp(-x));
  }
  return x;
}

/// `c` is where that element of c is.
template <class Number>
__device__ inline Number finished(const Finish& p, const Pointers& x, Number sum, std::int64_t row, std::int64_t column,
                                  std::int64_t c) {
  Number value = multiply_add(Number(0), static_cast<Number>(p.alpha), sum);
  if constexpr (std::is_floating_point_v<Number>) {
    if (p.scaled[0]) value *= static_cast<const float*>(x.inputs[3])[row * p.scale_strides[0]];
    if (p.scaled[1]) value *= static_cast<const float*>(x.inputs[4])[column * p.scale_strides[1]];
  }
  if (p.beta != 0) value = multiply_add(value, static_cast<Number>(p.beta), load_as<Number>(x.inputs[2], p.c, c));
  return activate(value, p.activation);
}

}  // namespace xpuruntime::cuda
