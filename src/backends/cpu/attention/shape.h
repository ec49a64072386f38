#pragma once

#include <algorithm>
#include <cstdint>

#include "backends/cpu/base/storage.h"
#include "core/elements.h"
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
  bool bottom_right = false;  // the last query sees the last key, else the first query the first one
  bool has_mask = false;
  bool has_lse = false;
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
  AttentionStrides lse = {};
  bool paged = false;      // keys and values lie on pages, else in one piece. Strides of k, v: page, head, row
  std::int64_t pages = 0;  // how many there are
  std::int64_t page_size = 1;

  /// Keys that may take part for query i of a sequence of this many: all, or up to its own position.
  std::int64_t keys_of(std::int64_t i, std::int64_t length) const {
    const std::int64_t position = i + 1 + (bottom_right ? length - queries : 0);
    return causal ? std::clamp<std::int64_t>(position, 0, length) : length;
  }
  std::int64_t keys_of(std::int64_t i) const { return keys_of(i, keys); }
  /// What the softmax multiplies scores by. With a mask, which is added to scaled scores, and with a negative scale,
  /// which makes the lowest the highest, the scale is already in the scores.
  float score_factor() const { return has_mask || scale < 0 ? 1 : scale; }
  /// The same with log2(e).
  float softmax_factor() const { return 1.44269504f * score_factor(); }
  bool empty() const { return batch * heads * queries * width == 0; }
};

AttentionShape attention_shape(const Problem& problem);

/// The shape of a call, given that of any problem in its class (attention_of_any_length).
AttentionShape attention_shape(AttentionShape shape, const RunArguments& arguments);

/// How many keys each sequence of a call has, and on which pages they lie.
class Sequences {
 public:
  Sequences(const AttentionShape& shape, const RunArguments& arguments);

  /// An error where a length is outside of the keys or a page that is needed outside of the pages.
  Status check() const;

  std::int64_t length(std::int64_t b) const {
    return lengths_ == nullptr ? shape_.keys : load_length_(lengths_, b * length_stride_);
  }
  std::int64_t keys_of(std::int64_t b, std::int64_t i) const { return shape_.keys_of(i, length(b)); }
  /// The sequence's line of the page table; null where there is none. Its pages are `page_step` apart.
  const std::int32_t* pages_of(std::int64_t b) const { return table_ == nullptr ? nullptr : table_ + b * table_row_; }
  std::int64_t page_step() const { return page_step_; }
  /// Where a key, or a value, begins.
  std::int64_t at(const AttentionStrides& strides, std::int64_t b, std::int64_t head, std::int64_t key) const {
    if (table_ == nullptr) return strides.at(b, head, key);
    return strides.at(pages_of(b)[key / shape_.page_size * page_step_], head, key % shape_.page_size);
  }

 private:
  const AttentionShape& shape_;
  const void* lengths_ = nullptr;
  LoadInteger load_length_ = nullptr;
  std::int64_t length_stride_ = 0;
  const std::int32_t* table_ = nullptr;
  std::int64_t table_row_ = 0;
  std::int64_t page_step_ = 0;
};

/// The logarithm of a row's sum of exponentials, from its highest score and its sum of weights; where the call wants
/// it.
void store_lse(const AttentionShape& shape, const RunArguments& arguments, std::int64_t row_at, float highest,
               float weight);

/// Rows of q, k, v and the output are contiguous, and the scale is one of f32.
Verdict supports_attention_rows(const Problem& problem);

/// Threads worth using, of so many: one where the pool costs more than it gives.
int attention_threads(int most, const AttentionShape& shape);

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
