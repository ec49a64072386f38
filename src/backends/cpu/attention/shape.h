#pragma once

#include <cstdint>

#include "backends/cpu/base/storage.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// Elements from one batch, head or row to the next, and along a row.
struct AttentionStrides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;
  std::int64_t column = 1;

  std::int64_t at(std::int64_t b, std::int64_t h, std::int64_t i) const { return b * batch + h * head + i * row; }
};

/// An attention problem in numbers. Query head h reads key head h / group.
struct AttentionShape {
  std::int64_t batch = 0;
  std::int64_t heads = 0;
  std::int64_t key_heads = 1;
  std::int64_t group = 1;
  std::int64_t queries = 0;
  std::int64_t keys = 0;
  std::int64_t depth = 0;  // of a query and a key
  std::int64_t width = 0;  // of a value
  float scale = 1;
  double exact_scale = 1;
  bool causal = false;
  bool has_mask = false;
  DataType q_dtype = DataType::float32;
  DataType k_dtype = DataType::float32;
  DataType v_dtype = DataType::float32;
  DataType mask_dtype = DataType::boolean;
  DataType out_dtype = DataType::float32;
  AttentionStrides q = {};
  AttentionStrides k = {};
  AttentionStrides v = {};
  AttentionStrides mask = {};  // 0 where it is broadcast
  AttentionStrides out = {};

  /// Keys that may take part for query i: all, or up to its own position.
  std::int64_t keys_of(std::int64_t i) const { return causal && i + 1 < keys ? i + 1 : keys; }
  /// What the softmax multiplies scores by, log2(e) included. With a mask, which is added to scaled scores, and with a
  /// negative scale, which makes the lowest the highest, the scale is already in the scores.
  float softmax_factor() const { return 1.44269504f * (has_mask || scale < 0 ? 1 : scale); }
  bool empty() const { return batch * heads * queries * width == 0; }
};

AttentionShape attention_shape(const Problem& problem);

/// Forward, aligned, floats in f32, f16 or bf16, a mask of bool or those, rows of q, k, v and the output contiguous.
Verdict supports_attention_floats(const Problem& problem);

/// Threads worth using: one where the pool costs more than it gives.
int attention_threads(const Problem& problem, const AttentionShape& shape);

/// An offset into the workspace for each part of it; parts start at multiples of 64 bytes.
class WorkspaceParts {
 public:
  std::size_t add(std::int64_t bytes) {
    const std::size_t at = size_;
    size_ += (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
    return at;
  }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// An address `offset` elements of `dtype` past `base`.
inline const void* element_at(const void* base, DataType dtype, std::int64_t offset) {
  return static_cast<const std::byte*>(base) + offset * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace xpuruntime::cpu
