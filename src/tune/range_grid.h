#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {

/// Problems from one corner to the opposite one, counted from the least size of each name; both ends are inside.
struct Box {
  std::vector<std::size_t> low = {};
  std::vector<std::size_t> high = {};
};

/// The problems of a range as points of a grid; the last name varies first, as in ProblemRange.
class RangeGrid {
 public:
  explicit RangeGrid(std::span<const SizeRange> names) : names_(names.begin(), names.end()) {}

  std::size_t axes() const { return names_.size(); }
  std::size_t extent(std::size_t axis) const {
    return static_cast<std::size_t>(names_[axis].high - names_[axis].low) + 1;
  }
  /// The size that a name has at an offset.
  std::int64_t size(std::size_t axis, std::size_t offset) const {
    return names_[axis].low + static_cast<std::int64_t>(offset);
  }
  Box whole() const {
    Box box{std::vector<std::size_t>(axes(), 0), {}};
    for (std::size_t axis = 0; axis < axes(); ++axis) box.high.push_back(extent(axis) - 1);
    return box;
  }
  std::size_t index(std::span<const std::size_t> at) const {
    std::size_t index = 0;
    for (std::size_t axis = 0; axis < axes(); ++axis) index = index * extent(axis) + at[axis];
    return index;
  }
  std::vector<std::size_t> offsets(std::size_t index) const {
    std::vector<std::size_t> at(axes());
    for (std::size_t axis = axes(); axis-- > 0;) {
      at[axis] = index % extent(axis);
      index /= extent(axis);
    }
    return at;
  }
  /// Calls `use` with the index of every point of a box, in order; false from it ends that.
  template <class Use>
  bool each(const Box& box, Use use) const {
    std::vector<std::size_t> at = box.low;
    for (;;) {
      if (!use(index(at))) return false;
      std::size_t axis = axes();
      while (axis > 0 && at[axis - 1] == box.high[axis - 1]) --axis, at[axis] = box.low[axis];
      if (axis == 0) return true;
      ++at[axis - 1];
    }
  }

 private:
  std::vector<SizeRange> names_;
};

}  // namespace xpuruntime
