#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "xpuruntime/core/problem.h"

// Values, bytes and positions for the oracle. Nothing here knows of any kernel.

namespace xpuruntime::oracle {

using Values = std::vector<double>;  // a tensor's elements in row-major order
using Position = std::array<std::int64_t, max_rank>;

/// Bytes of one value. Floats round to nearest even once; integers are cut off and clamped, and NaN is their 0.
void encode(DataType dtype, double value, std::byte* to);
double decode(DataType dtype, const std::byte* from);
/// The value nearest to this one that the dtype holds.
double rounded(DataType dtype, double value);

/// Half a unit in the last place, relative; 0 for integers, which must be exact.
double half_unit(DataType dtype);
/// Half the even spacing of the dtype's smallest values. f32 and bf16 results below 2^-126 may come as zero.
double smallest(DataType dtype);

inline constexpr std::byte input_filler{0x5a};   // between the elements of an input
inline constexpr std::byte output_poison{0xff};  // all over an output before it is written: NaN, mostly

/// The tensor's bytes, strides and all.
std::vector<std::byte> layout(const TensorSpec& spec, const Values& values);
/// The elements in those bytes.
Values elements(const TensorSpec& spec, const std::byte* bytes);
/// True when every byte between the elements still holds the poison.
bool gaps_untouched(const TensorSpec& spec, const std::byte* bytes);

/// Calls `use(position)` for every position of a shape in row-major order.
template <class Use>
void for_each_position(const Dims& shape, Use use) {
  Position position = {};
  for (const std::int64_t extent : shape) {
    if (extent == 0) return;
  }
  while (true) {
    use(position);
    std::size_t dim = shape.size();
    while (dim > 0 && ++position[dim - 1] == shape[dim - 1]) position[--dim] = 0;
    if (dim == 0) return;
  }
}

inline std::int64_t dot(const Position& position, const Dims& strides) {
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < strides.size(); ++i) offset += position[i] * strides[i];
  return offset;
}

/// A tensor that is read at positions of a shape it broadcasts to.
class Broadcast {
 public:
  Broadcast(const Values& values, const Dims& shape, const Dims& to);
  double at(const Position& position) const { return values_[static_cast<std::size_t>(dot(position, strides_))]; }

 private:
  const Values& values_;
  Dims strides_;
};

/// A shape seen as [outer, axis, inner], the axis counted from either end.
struct Lines {
  std::int64_t outer = 1, length = 1, inner = 1;

  Lines(const Dims& shape, std::int64_t axis);
  std::size_t index(std::int64_t o, std::int64_t i, std::int64_t p) const {
    return static_cast<std::size_t>((o * length + p) * inner + i);
  }
  /// The values along the axis.
  Values line(const Values& values, std::int64_t o, std::int64_t i) const {
    Values out;
    for (std::int64_t p = 0; p < length; ++p) out.push_back(values[index(o, i, p)]);
    return out;
  }
};

}  // namespace xpuruntime::oracle
