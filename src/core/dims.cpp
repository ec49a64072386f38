#include "xpuruntime/core/dims.h"

#include "xpuruntime/core/error.h"

namespace xpuruntime {

namespace {

void check_rank(std::size_t rank) {
  if (rank <= max_rank) return;
  fail(ErrorCode::invalid_argument, "Dims",
       "rank " + std::to_string(rank) + " is over the limit of " + std::to_string(max_rank) +
           "; merge dimensions first");
}

}  // namespace

Dims::Dims(std::span<const std::int64_t> values) : size_(values.size()) {
  check_rank(size_);
  std::copy(values.begin(), values.end(), values_);
}

Dims Dims::filled(std::size_t size, std::int64_t value) {
  check_rank(size);
  Dims dims;
  dims.size_ = size;
  std::fill_n(dims.values_, size, value);
  return dims;
}

std::string to_string(const Dims& dims) {
  std::string out = "[";
  for (std::size_t i = 0; i < dims.size(); ++i) out += (i ? "," : "") + std::to_string(dims[i]);
  return out + "]";
}

std::int64_t checked_count(const Dims& shape, std::size_t element_size) {
  // The overflow check ignores extents of 0: a tensor may be empty, but its other extents must still be sane.
  std::int64_t guard = static_cast<std::int64_t>(element_size);
  std::int64_t count = 1;  // at most the guard, so that it cannot overflow
  for (const std::int64_t extent : shape) {
    if (extent < 0) {
      fail(ErrorCode::invalid_argument, "checked_count",
           "shape " + to_string(shape) + " has a negative extent; extents must be 0 or more");
    }
    if (extent > 0 && __builtin_mul_overflow(guard, extent, &guard)) {
      fail(ErrorCode::invalid_argument, "checked_count",
           "shape " + to_string(shape) + " has more bytes than fit 63 bits; split the tensor");
    }
    count *= extent;
  }
  return count;
}

Dims contiguous_strides(const Dims& shape) {
  checked_count(shape, 1);
  Dims strides = Dims::filled(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) {
    strides[i - 1] = strides[i] * std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Dims channels_last_strides(const Dims& shape) {
  if (shape.size() < 2) {
    fail(ErrorCode::invalid_argument, "channels_last_strides",
         "shape " + to_string(shape) + " has no second dim; give two dims or more");
  }
  checked_count(shape, 1);
  Dims strides = Dims::filled(shape.size(), 1);
  std::int64_t stride = std::max<std::int64_t>(shape[1], 1);
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (i == 1) continue;
    strides[i] = stride;
    stride *= std::max<std::int64_t>(shape[i], 1);
  }
  return strides;
}

Dims broadcast_shapes(const Dims& a, const Dims& b) {
  const std::size_t rank = std::max(a.size(), b.size());
  Dims out = Dims::filled(rank, 1);
  for (std::size_t i = 0; i < rank; ++i) {  // from the last dimension backwards
    const std::int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const std::int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) {
      fail(ErrorCode::invalid_argument, "broadcast_shapes",
           "shapes " + to_string(a) + " and " + to_string(b) +
               " do not broadcast; make each pair of extents equal or 1, counted from the right");
    }
    out[rank - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

}  // namespace xpuruntime
