#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

// The types that fast kernels store in. Sixteen-bit values are bits until simd.h has widened them to f32.

namespace xpuruntime::cpu {

struct Half {
  std::uint16_t bits;
};

struct Bfloat {
  std::uint16_t bits;
};

/// Calls body with a value of the storage type: float, Half or Bfloat. Only for fast_floats.
template <class Body>
decltype(auto) with_storage(DataType dtype, const Body& body) {
  if (dtype == DataType::float16) return body(Half{});
  if (dtype == DataType::bfloat16) return body(Bfloat{});
  return body(float{});
}

}  // namespace xpuruntime::cpu
