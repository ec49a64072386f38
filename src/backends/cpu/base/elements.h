#pragma once

#include "core/elements.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::cpu {

inline double multiply_add(double sum, double a, double b) { return sum + a * b; }
/// Wraps as two's complement does, without undefined behaviour.
inline std::int64_t multiply_add(std::int64_t sum, std::int64_t a, std::int64_t b) {
  const std::uint64_t product = static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(sum) + product);
}

/// Walks all positions of `shape` in row-major order and keeps one offset per operand.
/// Operands of lower rank, or of extent 1, are broadcast.
template <std::size_t operands>
class Walk {
 public:
  /// With the first operands, in their order.
  template <class... Specs>
  explicit Walk(const Dims& shape, const Specs&... specs) : shape_(shape) {
    for (auto& strides : strides_) strides = Dims::filled(shape.size(), 0);
    for (const std::int64_t extent : shape) left_ *= extent;
    std::size_t which = 0;
    (set_operand(which++, specs), ...);
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
