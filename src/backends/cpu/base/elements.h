#pragma once

#include <cstdint>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime::cpu {

/// Reads the element at an index as a double; 64-bit integers past 2^53 lose their last bits this way.
using LoadElement = double (*)(const void* base, std::int64_t index);
LoadElement loader_of(DataType dtype);

/// Writes a double, rounded once to the element type; integers are cut off and clamped to their range, NaN becomes 0.
using StoreElement = void (*)(void* base, std::int64_t index, double value);
StoreElement storer_of(DataType dtype);

/// Integers in 64 bits, without a detour through floats.
using LoadInteger = std::int64_t (*)(const void* base, std::int64_t index);
LoadInteger integer_loader_of(DataType dtype);
using StoreInteger = void (*)(void* base, std::int64_t index, std::int64_t value);
StoreInteger integer_storer_of(DataType dtype);

/// Walks all positions of `shape` in row-major order and keeps one offset per operand.
/// Operands of lower rank, or of extent 1, are broadcast.
template <std::size_t operands>
class Walk {
 public:
  explicit Walk(const Dims& shape) : shape_(shape) {
    for (auto& strides : strides_) strides = Dims::filled(shape.size(), 0);
    for (const std::int64_t extent : shape) left_ *= extent;
  }

  void set_operand(std::size_t which, const TensorSpec& spec) {
    const std::size_t skipped = shape_.size() - spec.shape.size();
    for (std::size_t i = 0; i < spec.shape.size(); ++i) {
      strides_[which][skipped + i] = spec.shape[i] == 1 ? 0 : spec.strides[i];
    }
  }

  bool more() const { return left_ > 0; }
  std::int64_t offset(std::size_t which) const { return offsets_[which]; }

  void next() {
    --left_;
    for (std::size_t i = shape_.size(); i-- > 0;) {
      for (std::size_t which = 0; which < operands; ++which) offsets_[which] += strides_[which][i];
      if (++position_[i] < shape_[i]) return;
      for (std::size_t which = 0; which < operands; ++which) offsets_[which] -= strides_[which][i] * shape_[i];
      position_[i] = 0;
    }
  }

 private:
  Dims shape_;
  Dims strides_[operands] = {};
  std::int64_t offsets_[operands] = {};
  std::int64_t position_[max_rank] = {};
  std::int64_t left_ = 1;
};

}  // namespace xpuruntime::cpu
