#pragma once

#include <cstdint>

#include "backends/cpu/base/storage.h"

// The vector code that the kernels of this folder share: masks, the softmax of scores that come in blocks, and the
// widening and rounding around it.

namespace xpuruntime::cpu {

inline constexpr std::int64_t softmax_rows = 32;   // most rows in one call of softmax_step
inline constexpr std::int64_t softmax_align = 32;  // blocks of scores are a multiple of this wide

/// A block of scores and the state of its rows between blocks. A key's weight is 2^((score - highest) * factor).
struct SoftmaxBlock {
  float* scores = nullptr;
  std::int64_t row = 0;  // from one row of scores to the next
  std::int64_t rows = 0;
  std::int64_t columns = 0;  // a multiple of softmax_align; scores past the last key are -infinity
  float factor = 1;          // the scale that is not yet in the scores, times log2(e)
  float* highest = nullptr;  // of each row; -infinity before the first block
  float* sums = nullptr;     // of the weights of each row; 0 before the first block
  float* rescale = nullptr;  // out: what the row's earlier weights must be multiplied by
};

/// Puts weights in the place of the scores. False: all of `rescale` is 1.
bool softmax_step(const SoftmaxBlock& block);

/// The same with weights in bf16: those of columns 0, 16, 1, 17, 2 ... of each 32 follow each other from the start of
/// the row, as AmxPairs::halves takes them. Their error is below bf16's own.
bool softmax_step_bf16(const SoftmaxBlock& block);

/// Where a row's mask lies.
struct MaskRow {
  const void* data = nullptr;
  DataType dtype = DataType::boolean;
  std::int64_t stride = 0;  // from key to key, in elements
};

/// score * scale + mask for n scores; -infinity where a bool mask is false.
void mask_scores(float* scores, std::int64_t n, float scale, const MaskRow& mask);

/// Makes the scores from `first` up to `end` -infinity.
void hide_scores(float* scores, std::int64_t first, std::int64_t end);

/// Multiplies each row of `width` floats by its factor.
void rescale_rows(float* data, std::int64_t row, std::int64_t rows, std::int64_t width, const float* factors);

/// Stores sums / weight in `dtype`; zeros where the weight is 0.
void store_row(const float* sums, float weight, std::int64_t width, void* out, DataType dtype);

/// n elements of `dtype` as f32.
void widen_row(const void* from, DataType dtype, std::int64_t n, float* to);

}  // namespace xpuruntime::cpu
