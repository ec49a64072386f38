#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::cpu {

/// In which order a nest goes over its positions: as the shape says, or the last operand's memory in one sweep.
enum class NestOrder { row_major, by_last_operand };

/// Loops over several operands at once, with as few dims as will do: extents of 1 are dropped, and neighbours that all
/// operands cross in one step are merged. At least two dims remain. Operands of lower rank or extent 1 are broadcast.
template <std::size_t operands>
class Nest {
 public:
  using Offsets = std::array<std::int64_t, operands>;

  Nest(const Dims& shape, const std::array<const TensorSpec*, operands>& specs, NestOrder order) {
    for (std::size_t i = 0; i < shape.size(); ++i) {
      count_ *= shape[i];
      if (shape[i] != 1) add_dim(shape, specs, i);
    }
    if (order == NestOrder::by_last_operand) sort();
    merge();
    while (rank_ < 2) add_outer();
  }

  std::int64_t count() const { return count_; }
  std::size_t rank() const { return rank_; }
  /// Counted from the innermost, which is 0.
  std::int64_t extent(std::size_t dim) const { return extents_[rank_ - 1 - dim]; }
  std::int64_t stride(std::size_t operand, std::size_t dim) const { return strides_[rank_ - 1 - dim][operand]; }
  bool inner_is(std::size_t operand, std::int64_t stride_wanted) const {
    return extent(0) == 1 || stride(operand, 0) == stride_wanted;
  }

  /// Cuts the positions begin to end into blocks of whole rows, or of a part of one row, and calls
  /// body(offsets, rows, columns, position) for each.
  template <class Body>
  void for_blocks(std::int64_t begin, std::int64_t end, const Body& body) const {
    const std::int64_t columns = extent(0), rows = extent(1);
    while (begin < end) {
      const std::int64_t column = begin % columns, row = begin / columns % rows;
      const bool part = column != 0 || end - begin < columns;
      const std::int64_t wide = part ? std::min(columns - column, end - begin) : columns;
      const std::int64_t high = part ? 1 : std::min(rows - row, (end - begin) / columns);
      body(offsets_at(begin), high, wide, begin);
      begin += high * wide;
    }
  }

 private:
  void add_dim(const Dims& shape, const std::array<const TensorSpec*, operands>& specs, std::size_t dim) {
    extents_[rank_] = shape[dim];
    for (std::size_t k = 0; k < operands; ++k) {
      const std::size_t skipped = shape.size() - specs[k]->shape.size();
      const bool broadcast = dim < skipped || specs[k]->shape[dim - skipped] == 1;
      strides_[rank_][k] = broadcast ? 0 : specs[k]->strides[dim - skipped];
    }
    ++rank_;
  }

  // A stable insertion sort: at most eight dims, and equal strides stay in order.
  void sort() {
    for (std::size_t i = 1; i < rank_; ++i) {
      for (std::size_t j = i; j > 0 && strides_[j - 1].back() < strides_[j].back(); --j) {
        std::swap(strides_[j - 1], strides_[j]);
        std::swap(extents_[j - 1], extents_[j]);
      }
    }
  }

  bool mergeable(std::size_t outer, std::size_t inner) const {
    for (std::size_t k = 0; k < operands; ++k) {
      if (strides_[outer][k] != strides_[inner][k] * extents_[inner]) return false;
    }
    return true;
  }

  void merge() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rank_; ++i) {
      if (kept > 0 && mergeable(kept - 1, i)) {
        extents_[kept - 1] *= extents_[i];
        strides_[kept - 1] = strides_[i];
      } else {
        extents_[kept] = extents_[i];
        strides_[kept] = strides_[i];
        ++kept;
      }
    }
    rank_ = kept;
  }

  void add_outer() {
    for (std::size_t i = rank_; i > 0; --i) {
      extents_[i] = extents_[i - 1];
      strides_[i] = strides_[i - 1];
    }
    extents_[0] = 1;
    strides_[0] = {};
    ++rank_;
  }

  Offsets offsets_at(std::int64_t position) const {
    Offsets offsets = {};
    for (std::size_t i = rank_; i-- > 0;) {
      const std::int64_t index = position % extents_[i];
      position /= extents_[i];
      for (std::size_t k = 0; k < operands; ++k) offsets[k] += index * strides_[i][k];
    }
    return offsets;
  }

  std::int64_t count_ = 1;
  std::size_t rank_ = 0;
  std::array<std::int64_t, max_rank> extents_ = {};
  std::array<Offsets, max_rank> strides_ = {};  // outermost first, then by operand
};

}  // namespace xpuruntime::cpu
