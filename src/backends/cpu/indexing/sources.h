#pragma once

#include <vector>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// Elements in line of the output of pad, tile or flip, along one dim, and where they come from.
struct Run {
  std::int64_t begin = 0;  // in the output
  std::int64_t count = 0;
  std::int64_t from = -1;  // in the input; -1: filled
  std::int64_t step = 0;   // in the input: 1, 0 or -1
};

/// The output's dim `dim` from its first element to its last.
std::vector<Run> runs_of(const Problem& problem, std::size_t dim);

/// The strides of the input in the output's dims: a dim that tile put in front has 0.
Dims source_strides(const Problem& problem);

}  // namespace xpuruntime::cpu
