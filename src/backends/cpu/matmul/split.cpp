#include "backends/cpu/matmul/split.h"

#include <algorithm>
#include <limits>

#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

// As many as a deterministic call is cut into where it is large enough, on any number of threads.
constexpr std::int64_t fixed_parts = 16;
// Handing a task to another thread pays from about this much work on.
constexpr double least_microseconds = 10;
// Whole registers and tiles of every library here.
constexpr std::int64_t column_unit = 64;
constexpr std::int64_t row_unit = 16;

std::int64_t worthwhile_parts(const MatmulShape& shape, std::int64_t most, double multiplications_per_us) {
  const double work = static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k) *
                      static_cast<double>(shape.batch_count);
  return static_cast<std::int64_t>(
      std::clamp<double>(work / (multiplications_per_us * least_microseconds), 1, static_cast<double>(most)));
}

/// The length of a part when `extent` is cut into `parts` of whole units; only the last one may be shorter.
std::int64_t part_length(std::int64_t extent, std::int64_t parts, std::int64_t unit) {
  const std::int64_t length = (extent + parts - 1) / parts;
  return std::max<std::int64_t>((length + unit - 1) / unit * unit, 1);
}

}  // namespace

std::optional<MatrixLayout> layout_of(std::int64_t rows, std::int64_t columns, const MatrixStrides& strides) {
  const auto fits = [](std::int64_t leading, std::int64_t least) {
    return leading >= std::max<std::int64_t>(least, 1) && leading <= std::numeric_limits<int>::max();
  };
  // A stride over one row or column is never taken; libraries still want it to be large enough.
  const std::int64_t row = rows <= 1 ? std::max<std::int64_t>(columns, 1) : strides.row;
  const std::int64_t column = columns <= 1 ? std::max<std::int64_t>(rows, 1) : strides.column;
  if ((strides.column == 1 || columns <= 1) && fits(row, columns)) return MatrixLayout{false, row};
  if ((strides.row == 1 || rows <= 1) && fits(column, rows)) return MatrixLayout{true, column};
  return std::nullopt;
}

Verdict supports_library_layouts(const Problem& problem, const MatmulShape& shape) {
  const Verdict counted =
      is_at_most("the largest extent", std::max({shape.m, shape.n, shape.k}), std::numeric_limits<int>::max());
  if (!counted.supported) return counted;
  const bool a = layout_of(shape.m, shape.k, shape.a).has_value(), b = layout_of(shape.k, shape.n, shape.b).has_value();
  if (!a || !b) {
    return Verdict::no("neither the rows nor the columns of input " + std::string(a ? "1" : "0") + " are contiguous");
  }
  const auto out = layout_of(shape.m, shape.n, shape.c);
  if (!out || out->transposed) return Verdict::no("the rows of output 0 are not contiguous");
  return is_contiguous(problem, 2);
}

bool follows_threads(const MatmulShape& shape, bool fixed, double multiplications_per_us) {
  return !fixed && worthwhile_parts(shape, 2, multiplications_per_us) > 1;
}

std::vector<Slice> split_product(const MatmulShape& shape, int threads, bool fixed, double multiplications_per_us,
                                 SplitSide side) {
  if (shape.batch_count == 0) return {};
  const std::int64_t parts = worthwhile_parts(shape, fixed ? fixed_parts : threads, multiplications_per_us);
  const std::int64_t batch_parts = std::min(parts, shape.batch_count);
  const std::int64_t matrix_parts = (parts + batch_parts - 1) / batch_parts;
  const bool rows_suffice = shape.m >= 2 * row_unit * matrix_parts;
  const bool by_rows = side == SplitSide::rows ? rows_suffice : shape.m > shape.n;
  const std::int64_t batches = part_length(shape.batch_count, batch_parts, 1);
  const std::int64_t rows = by_rows ? part_length(shape.m, matrix_parts, row_unit) : shape.m;
  const std::int64_t columns = by_rows ? shape.n : part_length(shape.n, matrix_parts, column_unit);
  std::vector<Slice> slices;
  for (std::int64_t b = 0; b < shape.batch_count; b += batches) {
    for (std::int64_t i = 0; i < shape.m; i += rows) {
      for (std::int64_t j = 0; j < shape.n; j += columns) {
        slices.push_back({b, std::min(batches, shape.batch_count - b), i, std::min(rows, shape.m - i), j,
                          std::min(columns, shape.n - j)});
      }
    }
  }
  return slices;
}

}  // namespace xpuruntime::cpu
