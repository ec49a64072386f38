#pragma once

#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// Some elements in line, and their scale and zero point: one of each, or one for each element.
struct QuantizedRow {
  const void* in = nullptr;
  void* out = nullptr;
  std::int64_t count = 0;
  const float* scale = nullptr;
  const float* zero = nullptr;
};

using RunQuantizedRow = void (*)(const QuantizedRow& row);

/// The code for this CPU; `each`: every element has a scale of its own.
RunQuantizedRow find_quantize(DataType from, DataType to, bool each);
RunQuantizedRow find_dequantize(DataType from, DataType to, bool each);

}  // namespace xpuruntime::cpu
