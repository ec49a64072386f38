// Rows of any float storage and stride, a chunk at a time, as f32 in a buffer: what mixed dtypes and strided rows go
// through. Has Highway's toggling guard.
#if defined(XRT_CPU_ELEMENTWISE_CHUNK_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_ELEMENTWISE_CHUNK_H_
#undef XRT_CPU_ELEMENTWISE_CHUNK_H_
#else
#define XRT_CPU_ELEMENTWISE_CHUNK_H_
#endif

#include <type_traits>

#include "backends/cpu/base/block.h"
#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

inline constexpr std::int64_t chunk_size = 512;

inline bool in_line_or_one(const BlockOperand& operand) { return operand.column == 0 || operand.column == 1; }

/// One element in all lanes.
template <class T>
HWY_INLINE F32Vec splat(const T* from) {
  T lanes[hn::MaxLanes(F32())];
  std::fill_n(lanes, hn::MaxLanes(F32()), *from);
  return load(lanes);
}
HWY_INLINE F32Vec splat(const float* from) { return hn::Set(F32(), *from); }

template <class T>
void widen_row(const T* from, std::int64_t stride, std::int64_t n, float* to) {
  if (stride == 1) {
    return for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(load(from + i), to + i); });
  }
  if constexpr (std::is_same_v<T, float>) return gather(from, stride, n, to);
  T gathered[chunk_size];
  gather(from, stride, n, gathered);
  widen_row(gathered, 1, n, to);
}

template <class T>
void narrow_row(const float* from, T* to, std::int64_t stride, std::int64_t n) {
  if (stride == 1) {
    return for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(load(from + i), to + i); });
  }
  T packed[chunk_size];
  narrow_row(from, packed, 1, n);
  for (std::int64_t i = 0; i < n; ++i) to[i * stride] = packed[i];
}

/// The first n <= chunk_size elements of a row as f32: where they lie if they are f32 in line, else in `buffer`.
inline const float* widened(const BlockOperand& row, std::int64_t n, float* buffer) {
  if (row.dtype == DataType::float32 && row.column == 1) return static_cast<const float*>(row.data);
  with_storage(row.dtype,
               [&](auto type) { widen_row(static_cast<const decltype(type)*>(row.data), row.column, n, buffer); });
  return buffer;
}

/// The same of elements of one type, as they are.
template <class T>
const T* in_line(const BlockOperand& row, std::int64_t n, T* buffer) {
  const T* from = static_cast<const T*>(row.data);
  if (row.column == 1) return from;
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i * row.column];
  return buffer;
}

inline void narrowed(const float* from, const BlockOperand& row, std::int64_t n) {
  with_storage(row.dtype, [&](auto type) { narrow_row(from, static_cast<decltype(type)*>(row.data), row.column, n); });
}

/// Calls body(row, column, n) for each chunk of the block.
template <class Body>
void for_chunks(const Block& block, const Body& body) {
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for (std::int64_t j = 0; j < block.columns; j += chunk_size) {
      body(i, j, std::min(chunk_size, block.columns - j));
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
