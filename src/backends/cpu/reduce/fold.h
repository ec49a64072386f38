#pragma once

#include "backends/cpu/reduce/layout.h"

namespace xpuruntime::cpu {

enum class FoldKind : std::uint8_t { sum, max, min };

/// A reduction cut into units that depend on the problem alone: every thread that computes a unit gets the same bits.
struct FoldJob {
  FoldKind kind = FoldKind::sum;
  DataType dtype = DataType::float32;
  ReduceLayout layout = {};
  std::int64_t rows_per_group = 1;  // reduced positions that one unit goes over, the innermost dim aside
  std::int64_t groups = 1;
  std::int64_t piece = 1;  // elements of the innermost dim that one unit goes along
  std::int64_t pieces = 1;
};

/// The most elements of a piece where the innermost dim is kept.
inline constexpr std::int64_t most_columns = 1024;

FoldJob make_fold_job(const Problem& problem);

/// Where the innermost dim is reduced. Unit u is piece u % pieces of group u / pieces % groups of output
/// u / pieces / groups; its result goes to results[u - begin].
void fold_rows(const FoldJob& job, const void* x, std::int64_t begin, std::int64_t end, float* results);

/// Where the innermost dim is kept: folds one group of rows of the columns [first, first + width), which lie from
/// `x` on, into result[0 .. width). `width` is at most most_columns, and `result` has room for as many.
void fold_columns(const FoldJob& job, const void* x, std::int64_t group, std::int64_t width, float* result);

/// Multiplies, divides and stores n floats at contiguous elements of dtype f32, f16 or bf16.
void store_results(const float* results, std::int64_t n, float factor, float divisor, DataType dtype, void* out);

}  // namespace xpuruntime::cpu
