#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/matmul_shape.h"
#include "xpuruntime/registry/kernel.h"

// How a product is handed to a library that runs on one thread: as several smaller products, one a task.

namespace xpuruntime::cpu {

/// How libraries are told about a matrix: they can skip over rows, or over columns of a transposed one, but not both.
struct MatrixLayout {
  bool transposed = false;
  std::int64_t leading = 1;

  std::int64_t row() const { return transposed ? 1 : leading; }
  std::int64_t column() const { return transposed ? leading : 1; }
};

/// Nothing where no stride is 1, rows overlap, or the leading one does not fit 31 bits.
std::optional<MatrixLayout> layout_of(std::int64_t rows, std::int64_t columns, const MatrixStrides& strides);

/// Whether libraries can be told about all matrices of a product, with the output by rows and the bias in line.
Verdict supports_library_layouts(const Problem& problem, const MatmulShape& shape);

/// A part of the product's batches, rows and columns.
struct Slice {
  std::int64_t batch = 0, batches = 0;
  std::int64_t row = 0, rows = 0;
  std::int64_t column = 0, columns = 0;
};

enum class SplitSide { longer, rows };

/// What the token of a plan says whose slices follow the number of threads. Libraries go through a sum in an order that
/// may depend on the extents: such a plan may give other bits on another number of threads.
inline constexpr const char* split_by_threads = " split=threads";

/// Whether the slices of a product follow the number of threads: it is not fixed, and large enough to be cut.
bool follows_threads(const MatmulShape& shape, bool fixed, double multiplications_per_us);

/// At most `threads` slices of like size, fewer where the work is small; under `fixed` their number depends on the
/// shape alone. Batches are cut first; of rows and columns the longer side, or the rows as long as they suffice.
std::vector<Slice> split_product(const MatmulShape& shape, int threads, bool fixed, double multiplications_per_us,
                                 SplitSide side = SplitSide::longer);

}  // namespace xpuruntime::cpu
