#include <algorithm>
#include <cmath>
#include <numeric>

#include "graph/native/calls.h"
#include "graph/native/known.h"

// Operators whose results are as long as their inputs' values say, which must be known before a run.

namespace xpuruntime::native {
namespace {

using Places = std::vector<std::int64_t>;

/// The places of what is not 0, a column for each: their number is the result's shape.
Slots non_zero(const NodeCall& call) {
  const Known x(call, 0);
  const Dims shape = call.shape(0), strides = contiguous_strides(shape);
  Places places;
  for (std::int64_t i = 0; i < x.count; ++i) {
    if (x.real(i) != 0) places.push_back(i);
  }
  const auto found = static_cast<std::int64_t>(places.size()), rank = static_cast<std::int64_t>(shape.size());
  Places columns;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    for (const std::int64_t place : places) columns.push_back(place / strides[d] % shape[d]);
  }
  return {call.builder.reshaped(call.builder.integers(columns), {rank, found})};
}

/// Slices of an axis, or elements where there is none.
int picked(const NodeCall& call, const Places& places) {
  Builder& builder = call.builder;
  const bool has_axis = call.attribute("axis") != nullptr;
  const int from = has_axis ? call[0] : builder.reshaped(call[0], {element_count(builder.spec(call[0]))});
  const std::size_t axis = has_axis ? call.axis(call.integer("axis", 0), call.shape(0).size()) : 0;
  return Calls{builder}.gathered(from, axis, builder.integers(places));
}

/// Where a condition holds.
Slots compress(const NodeCall& call) {
  const Known condition(call, 1);
  Places kept;
  for (std::int64_t i = 0; i < condition.count; ++i) {
    if (condition.real(i) != 0) kept.push_back(i);
  }
  return {picked(call, kept)};
}

/// The slices of an axis as rows that can be put in order; NaN comes last and equals itself.
class Rows {
 public:
  Rows(const NodeCall& call, const Known& x) : x_(x) {
    const Dims shape = call.shape(0);
    if (call.attribute("axis") == nullptr) {
      count_ = x.count;
      return;
    }
    const std::size_t axis = call.axis(call.integer("axis", 0), shape.size());
    count_ = shape.empty() ? 1 : shape[axis];
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (d != axis) (d < axis ? outer_ : inner_) *= shape[d];
    }
  }

  std::int64_t count() const { return count_; }

  /// Below 0: row a comes before b.
  int compare(std::int64_t a, std::int64_t b) const {
    for (std::int64_t outer = 0; outer < outer_; ++outer) {
      for (std::int64_t inner = 0; inner < inner_; ++inner) {
        const auto at = [&](std::int64_t row) { return (outer * count_ + row) * inner_ + inner; };
        const int order =
            is_floating(x_.dtype) ? compared(x_.real(at(a)), x_.real(at(b))) : compared(integer(at(a)), integer(at(b)));
        if (order != 0) return order;
      }
    }
    return 0;
  }

 private:
  static int compared(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) return static_cast<int>(std::isnan(a)) - static_cast<int>(std::isnan(b));
    return a < b ? -1 : static_cast<int>(a > b);
  }
  static int compared(std::int64_t a, std::int64_t b) { return a < b ? -1 : static_cast<int>(a > b); }
  std::int64_t integer(std::int64_t at) const { return integer_loader_of(x_.dtype)(x_.data, at); }

  const Known& x_;
  std::int64_t count_ = 1, outer_ = 1, inner_ = 1;
};

/// Each slice once, in order or as they come first, where each first is, which each is, and how many there are.
Slots unique(const NodeCall& call) {
  const Known x(call, 0);
  const Rows rows(call, x);
  Places order(static_cast<std::size_t>(rows.count()));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) { return rows.compare(a, b) < 0; });
  std::vector<Places> groups;  // of equal rows
  for (const std::int64_t row : order) {
    if (groups.empty() || rows.compare(groups.back()[0], row) != 0) groups.emplace_back();
    groups.back().push_back(row);
  }
  if (call.integer("sorted", 1) == 0) {
    std::sort(groups.begin(), groups.end(), [](const Places& a, const Places& b) { return a[0] < b[0]; });
  }
  Places first, which(order.size()), counts;
  for (const Places& group : groups) {
    for (const std::int64_t row : group) {
      which[static_cast<std::size_t>(row)] = static_cast<std::int64_t>(first.size());
    }
    first.push_back(group[0]);
    counts.push_back(static_cast<std::int64_t>(group.size()));
  }
  Builder& builder = call.builder;
  return {picked(call, first), builder.integers(first), builder.integers(which), builder.integers(counts)};
}

struct Box {
  double top, left, bottom, right;

  double area() const { return (bottom - top) * (right - left); }
  bool overlaps(const Box& other, double most) const {
    const double height = std::min(bottom, other.bottom) - std::max(top, other.top);
    const double width = std::min(right, other.right) - std::max(left, other.left);
    if (!(height > 0) || !(width > 0) || !(area() > 0) || !(other.area() > 0)) return false;
    return height * width / (area() + other.area() - height * width) > most;
  }
};

/// Corners, any two that are opposite, or centre and size.
Box box_of(const Known& boxes, std::int64_t index, bool by_centre) {
  const auto at = [&](std::int64_t i) { return boxes.real(index * 4 + i); };
  if (by_centre) {
    const double x = at(0), y = at(1), half_width = at(2) / 2, half_height = at(3) / 2;
    return {y - half_height, x - half_width, y + half_height, x + half_width};
  }
  return {std::min(at(0), at(2)), std::min(at(1), at(3)), std::max(at(0), at(2)), std::max(at(1), at(3))};
}

/// The best boxes of one class that do not overlap, best first.
class Suppression {
 public:
  Suppression(const NodeCall& call, std::int64_t most, double most_overlap)
      : call_(call), most_(most), most_overlap_(most_overlap) {}

  Places kept_of(const std::vector<Box>& boxes, std::vector<std::pair<double, std::int64_t>> candidates) {
    std::sort(candidates.begin(), candidates.end(), [](const auto& a, const auto& b) {
      return a.first > b.first || (a.first == b.first && a.second < b.second);
    });
    Places kept;
    for (const auto& [score, box] : candidates) {
      if (static_cast<std::int64_t>(kept.size()) >= most_) break;
      const Box& one = boxes[static_cast<std::size_t>(box)];
      compared_ += static_cast<std::int64_t>(kept.size());
      constexpr std::int64_t most_compared = std::int64_t{1} << 30;  // the time this takes is bounded
      if (compared_ > most_compared) call_.refuse("more than a billion pairs of boxes");
      const bool is_covered = std::any_of(kept.begin(), kept.end(), [&](std::int64_t other) {
        return one.overlaps(boxes[static_cast<std::size_t>(other)], most_overlap_);
      });
      if (!is_covered) kept.push_back(box);
    }
    return kept;
  }

 private:
  const NodeCall& call_;
  std::int64_t most_, compared_ = 0;
  double most_overlap_;
};

Slots non_max_suppression(const NodeCall& call) {
  const Known boxes(call, 0), scores(call, 1);
  const Dims box_shape = call.shape(0), shape = call.shape(1);
  if (box_shape.size() != 3 || shape.size() != 3 || box_shape[2] != 4 || box_shape[0] != shape[0] ||
      box_shape[1] != shape[2]) {
    call.refuse("boxes " + to_string(box_shape) + " with scores " + to_string(shape));
  }
  const auto real = [&](std::size_t input, double otherwise) {
    if (!call.has(input)) return otherwise;
    const Known known(call, input);
    return known.count == 0 ? otherwise : known.real(0);
  };
  const double least = real(4, -HUGE_VAL);
  Suppression suppression(call, call.has(2) ? call.number(2) : 0, real(3, 0));
  const bool by_centre = call.integer("center_point_box", 0) != 0;
  Places found;
  for (std::int64_t batch = 0; batch < shape[0]; ++batch) {
    std::vector<Box> all;
    for (std::int64_t i = 0; i < shape[2]; ++i) all.push_back(box_of(boxes, batch * shape[2] + i, by_centre));
    for (std::int64_t group = 0; group < shape[1]; ++group) {
      std::vector<std::pair<double, std::int64_t>> candidates;
      for (std::int64_t i = 0; i < shape[2]; ++i) {
        const double score = scores.real((batch * shape[1] + group) * shape[2] + i);
        if (call.has(4) ? score > least : !std::isnan(score)) candidates.emplace_back(score, i);
      }
      for (const std::int64_t box : suppression.kept_of(all, std::move(candidates))) {
        found.insert(found.end(), {batch, group, box});
      }
    }
  }
  return {call.builder.reshaped(call.builder.integers(found), {static_cast<std::int64_t>(found.size()) / 3, 3})};
}

constexpr Operator selecting_rows[] = {
    {"NonZero", non_zero}, {"Compress", compress}, {"Unique", unique}, {"NonMaxSuppression", non_max_suppression}};

}  // namespace

std::span<const Operator> selecting_operators() { return selecting_rows; }

}  // namespace xpuruntime::native
