#pragma once

#include "backends/cpu/matmul/packed_task.h"

// Products in which one operand has few vectors: the other, large one is read once, as fast as memory gives it.

namespace xpuruntime::cpu {

inline constexpr std::int64_t most_few = 8;
/// Sums of one chunk of columns, for all of the few together.
inline constexpr std::int64_t skinny_sums = 4096;
/// The loops exist for 1, 2, 4 and 8: vectors of zeros fill up the few.
inline constexpr std::int64_t padded_few(std::int64_t few) { return few <= 2 ? few : few <= 4 ? 4 : most_few; }
/// From one of the widened few to the next: each is padded to whole vectors.
inline constexpr std::int64_t skinny_few_step(std::int64_t k) { return (k + 15) / 16 * 16; }

/// out[i, j] = activation(sum over p of few(i, p) * many(j, p) + bias) for j from begin to end.
struct SkinnyTask {
  std::int64_t few_count = 1;
  std::int64_t k = 0;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  TileOperand few = {};
  TileOperand many = {};  // one of its strides is 1
  void* out = nullptr;
  DataType out_dtype = DataType::float32;
  std::int64_t out_few = 0;
  std::int64_t out_many = 0;
  const float* few_bias = nullptr;
  const float* many_bias = nullptr;
  Activation activation = Activation::none;
  float* buffer = nullptr;  // skinny_buffer_floats, 64-byte aligned
};

inline std::int64_t skinny_buffer_floats(std::int64_t few_count, std::int64_t k) {
  return padded_few(few_count) * skinny_few_step(k) + 2 * skinny_sums;
}

void run_skinny(const SkinnyTask& task);

}  // namespace xpuruntime::cpu
