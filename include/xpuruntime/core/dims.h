#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

namespace xpuruntime {

inline constexpr std::size_t max_rank = 8;

/// The extents or strides of a tensor: at most eight numbers, stored in place.
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<std::int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  /// More than max_rank values are an error.
  explicit Dims(std::span<const std::int64_t> values);
  /// A size over max_rank is an error too.
  static Dims filled(std::size_t size, std::int64_t value);

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }
  std::int64_t& operator[](std::size_t i) { return values_[i]; }
  std::int64_t back() const { return values_[size_ - 1]; }
  const std::int64_t* data() const { return values_; }
  const std::int64_t* begin() const { return values_; }
  const std::int64_t* end() const { return values_ + size_; }

  friend bool operator==(const Dims& a, const Dims& b) {
    return a.size_ == b.size_ && std::equal(a.begin(), a.end(), b.begin());
  }

 private:
  std::size_t size_ = 0;
  std::int64_t values_[max_rank] = {};
};

/// "[2,3]"
std::string to_string(const Dims& dims);

/// Product of the extents; an error where it, times `element_size`, does not fit 63 bits or an extent is negative.
std::int64_t checked_count(const Dims& shape, std::size_t element_size);

/// Row-major strides of a shape, in elements; an error where checked_count has one.
Dims contiguous_strides(const Dims& shape);
/// The same with the second dim innermost and the others in their order: PyTorch's channels_last. Fewer than two dims
/// are an error.
Dims channels_last_strides(const Dims& shape);

/// The shape both broadcast to by NumPy's rules; an error that shows both where they do not fit.
Dims broadcast_shapes(const Dims& a, const Dims& b);

}  // namespace xpuruntime
