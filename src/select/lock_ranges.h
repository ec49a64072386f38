#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {

/// Both as one, by the names of the first, where they are alike but for the bounds of one size and leave no gap there.
std::optional<ProblemRange> joined(const ProblemRange& a, const ProblemRange& b);

/// Finds those of many ranges that hold a problem, without trying each of them.
class RangeIndex {
 public:
  RangeIndex() = default;
  /// They must live as long as it.
  explicit RangeIndex(std::span<const ProblemRange* const> ranges);

  /// The places of the ranges that hold it, in order.
  std::vector<std::size_t> holding(const Problem& problem) const;

 private:
  using Varying = std::vector<std::vector<bool>>;  // of each input the extents that are not the same in all sizes

  struct Span {
    std::int64_t low = 0, high = 0;  // of the first extent that varies
    std::int64_t reach = 0;          // the largest `high` up to here
    std::size_t place = 0;
  };

  static std::string fixed_part(const Problem& problem, const Varying& varying);
  static std::int64_t first_varying(const Problem& problem, const Varying& varying);

  std::vector<const ProblemRange*> ranges_;
  std::map<Varying, std::map<std::string, std::vector<Span>>> spans_;  // by what does not vary, sorted by `low`
};

}  // namespace xpuruntime
