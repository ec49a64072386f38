#pragma once

#include "backends/cpu/norm/lines.h"

namespace xpuruntime::cpu {

enum class NormKind : std::uint8_t { count, one, two, most };  // p of 0, 1, 2 and infinity

/// x / max(norm, eps) along the lines of a dense tensor.
struct NormalizeJob {
  DataType dtype = DataType::float32;
  NormKind kind = NormKind::two;
  Lines lines = {};
  double eps = 0;
};

/// Lines [begin, end): rows where the inner extent is 1, else line i of outer position i / inner.
void normalize_lines(const NormalizeJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end);

}  // namespace xpuruntime::cpu
