#include "backends/cpu/movement/indices.h"

#include <string>

#include "backends/cpu/base/elements.h"

namespace xpuruntime::cpu {
namespace {

Status outside(std::int64_t position, std::int64_t index, std::int64_t rows) {
  return {ErrorCode::invalid_argument,
          "index " + std::to_string(index) + " at position " + std::to_string(position) +
              " of the indices is outside the table of " + std::to_string(rows) + " rows; " +
              (rows == 0 ? "give a table with rows" : "give 0 to " + std::to_string(rows - 1))};
}

// Negative ones are large as unsigned numbers. No early way out, so that it runs in vectors.
template <class T>
bool all_inside(const T* indices, std::int64_t count, std::int64_t rows) {
  bool inside = true;
  for (std::int64_t i = 0; i < count; ++i) {
    inside &= static_cast<std::uint64_t>(std::int64_t{indices[i]}) < static_cast<std::uint64_t>(rows);
  }
  return inside;
}

}  // namespace

Status check_indices(const TensorSpec& spec, const void* indices, std::int64_t rows) {
  const std::int64_t count = element_count(spec);
  if (spec.contiguous && spec.dtype == DataType::int64 &&
      all_inside(static_cast<const std::int64_t*>(indices), count, rows)) {
    return {};
  }
  if (spec.contiguous && spec.dtype == DataType::int32 &&
      all_inside(static_cast<const std::int32_t*>(indices), count, rows)) {
    return {};
  }
  const LoadInteger load = integer_loader_of(spec.dtype);
  Walk<1> walk(spec.shape, spec);
  for (std::int64_t position = 0; walk.more(); walk.next(), ++position) {
    const std::int64_t index = load(indices, walk.offset(0));
    if (index < 0 || index >= rows) return outside(position, index, rows);
  }
  return {};
}

}  // namespace xpuruntime::cpu
