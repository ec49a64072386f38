#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// The sizes that a name stands for, both ends included: `m=1..512`.
struct SizeRange {
  std::string name = {};
  std::int64_t low = 1;
  std::int64_t high = 1;

  bool operator==(const SizeRange&) const = default;
};

/// One extent or stride of a tensor: a number, or one of the names. A stride may be a multiple of one.
struct RangedExtent {
  std::int64_t value = 0;  // the number, or how many times the name: 1 in an extent
  int name = -1;           // -1: a number

  bool operator==(const RangedExtent&) const = default;
};

/// A tensor of which some extents vary.
struct RangedSpec {
  DataType dtype = DataType::float32;
  std::vector<RangedExtent> shape = {};
  std::vector<RangedExtent> strides = {};  // empty: contiguous
  std::uint8_t alignment = 16;

  bool operator==(const RangedSpec&) const = default;
};

/// Problems that are alike but for some extents: `matmul(f32[m,768], f32[768,768]) @cpu:0 where m=1..512`. Made by
/// parse_problem_range.
class ProblemRange {
 public:
  /// Everything that does not vary, at the least sizes.
  const Problem& least() const { return least_; }
  const std::vector<SizeRange>& names() const { return names_; }
  /// How many problems it holds: one for each combination of sizes.
  std::size_t count() const;
  /// The sizes of problem `index`, one for each name; the last name varies first.
  std::vector<std::int64_t> sizes_at(std::size_t index) const;

  /// The problem of these sizes, one for each name. Sizes outside the range, and sizes that do not fit together, are an
  /// error that names them.
  Problem at(std::span<const std::int64_t> sizes) const;
  Problem at(std::size_t index) const { return at(sizes_at(index)); }

  /// The sizes that a problem has where names stand, if they are in the range. Nothing else is compared.
  std::optional<std::vector<std::int64_t>> sizes_of(const Problem& problem) const;
  /// The one of these that is nearest to a problem, by its sizes where names stand; nothing where the two have too
  /// little in common.
  std::optional<Problem> nearest(const Problem& problem) const;
  /// Whether a problem is one of these: device, limits, strides and alignments are theirs.
  bool contains(const Problem& problem) const;
  /// Whether every problem of the other is one of these. False where that is not certain.
  bool contains(const ProblemRange& other) const;

  /// The same with other bounds, in the order of names().
  ProblemRange with_names(std::vector<SizeRange> names) const;
  /// The same under these limits.
  ProblemRange with_limits(const Limits& limits) const;
  /// The same with tensors of these dtypes, as a decision casts them.
  ProblemRange with_dtypes_of(const Problem& problem) const;

  bool operator==(const ProblemRange&) const = default;

 private:
  friend ProblemRange parse_problem_range(std::string_view text, Device device);
  friend std::string to_string(const ProblemRange& range);
  Problem made(std::span<const std::int64_t> sizes) const;

  Problem least_ = {};
  std::vector<RangedSpec> inputs_ = {};
  std::vector<RangedSpec> outputs_ = {};  // empty: inferred
  std::vector<SizeRange> names_ = {};
};

/// Reads a problem text in which extents may be names, and after it `where` with a range for each of them:
/// `where b=1..8, s=1..512`. Strides may be names, or multiples of one: `64n`. At most 4 names and 2^20 problems.
/// Errors name the column.
ProblemRange parse_problem_range(std::string_view text, Device device = {});

/// Whether a text has a `where` clause.
bool has_ranges(std::string_view text);

/// The problem of a text; of one with ranges that of the least sizes.
Problem least_problem(std::string_view text);

std::string to_string(const ProblemRange& range);
/// "m=17, n=4": sizes with their names.
std::string sizes_text(const ProblemRange& range, std::span<const std::int64_t> sizes);

/// The ranges that problems seem to come from: such that differ in one size alone, wherever it stands, of which there
/// are `least_sizes` or more. From the least to the largest that was seen.
std::vector<ProblemRange> propose_ranges(std::span<const Problem> problems, std::size_t least_sizes = 4);

}  // namespace xpuruntime
