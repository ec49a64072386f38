#pragma once

#include <span>
#include <vector>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// Some dims of a tensor walked by one number.
struct Axis {
  std::int64_t count = 1;
  std::int64_t in = 0;   // stride in the input
  std::int64_t out = 0;  // stride in the output
};

struct Offsets {
  std::int64_t in = 0;
  std::int64_t out = 0;
};

/// Where position `index` of the axes lies, the last axis being the fastest.
inline Offsets offsets_at(std::span<const Axis> axes, std::int64_t index) {
  Offsets offsets;
  for (std::size_t i = axes.size(); i-- > 0;) {
    const std::int64_t position = i == 0 ? index : index % axes[i].count;
    if (i != 0) index /= axes[i].count;
    offsets.in += position * axes[i].in;
    offsets.out += position * axes[i].out;
  }
  return offsets;
}

/// A reduction with its dims sorted by stride and merged. The innermost dim, which vectors go along, is either reduced
/// (rows) or kept (columns).
struct ReduceLayout {
  std::vector<Axis> kept = {};     // without the innermost
  std::vector<Axis> reduced = {};  // without the innermost
  Axis inner = {};
  bool inner_reduced = true;
  std::int64_t repeats = 1;  // how often each term counts: reduced dims with a stride of 0 are not walked

  std::int64_t kept_count() const;     // without the innermost
  std::int64_t reduced_count() const;  // without the innermost
  /// Without repeats.
  std::int64_t terms() const { return reduced_count() * (inner_reduced ? inner.count : 1); }
  std::int64_t outputs() const { return kept_count() * (inner_reduced ? 1 : inner.count); }
};

ReduceLayout reduce_layout(const Problem& problem);

}  // namespace xpuruntime::cpu
