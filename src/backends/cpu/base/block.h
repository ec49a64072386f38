#pragma once

#include <array>
#include <cstdint>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime::cpu {

/// Where a block of one operand lies: element (i, j) is `row * i + column * j` elements after `data`.
struct BlockOperand {
  void* data = nullptr;
  DataType dtype = DataType::float32;
  std::int64_t row = 0;
  std::int64_t column = 1;
};

/// Numbers that a function of elements takes beside them, such as a slope.
using FunctionParameters = std::array<float, 2>;

/// Two inputs at most, then the output.
struct Block {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  BlockOperand a = {};
  BlockOperand b = {};
  BlockOperand out = {};
  FunctionParameters parameters = {};
};

using RunBlock = void (*)(const Block& block);

/// The code of the kernel `simd` of cast for this CPU; null where there is none for these dtypes.
RunBlock find_cast(DataType from, DataType to);

/// Where one row of an operand starts.
inline BlockOperand row_of(const BlockOperand& operand, std::int64_t row, std::int64_t column = 0) {
  BlockOperand at = operand;
  const std::int64_t elements = row * operand.row + column * operand.column;
  at.data = static_cast<char*>(operand.data) + elements * static_cast<std::int64_t>(size_of(operand.dtype));
  return at;
}

}  // namespace xpuruntime::cpu
