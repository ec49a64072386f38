#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/integers_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "backends/cpu/elementwise/plan.h"

// Sums, differences and products of integers of one type, which wrap.

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct AddIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Add(a, b);
  }
};
struct SubIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Sub(a, b);
  }
};
struct MulIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Mul(a, b);
  }
};

template <class Function, class T>
void combine_row(const T* a, const T* b, T* out, std::int64_t n) {
  const hn::ScalableTag<T> d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(Function::of(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, out + i);
  }
  const hn::CappedTag<T, 1> one;
  for (; i < n; ++i) hn::StoreU(Function::of(hn::LoadU(one, a + i), hn::LoadU(one, b + i)), one, out + i);
}

/// A row in line: where it is, or gathered in the buffer.
template <class T>
const T* in_line(const BlockOperand& row, std::int64_t n, T* buffer) {
  const T* from = static_cast<const T*>(row.data);
  if (row.column == 1) return from;
  for (std::int64_t i = 0; i < n; ++i) buffer[i] = from[i * row.column];
  return buffer;
}

template <class Function, class T>
void combine_block(const Block& block) {
  constexpr std::int64_t chunk = 512;
  T a[chunk], b[chunk], out[chunk];
  for (std::int64_t i = 0; i < block.rows; ++i) {
    for (std::int64_t j = 0; j < block.columns; j += chunk) {
      const std::int64_t n = std::min(chunk, block.columns - j);
      const BlockOperand to = row_of(block.out, i, j);
      T* target = to.column == 1 ? static_cast<T*>(to.data) : out;
      combine_row<Function>(in_line(row_of(block.a, i, j), n, a), in_line(row_of(block.b, i, j), n, b), target, n);
      if (to.column == 1) continue;
      for (std::int64_t k = 0; k < n; ++k) static_cast<T*>(to.data)[k * to.column] = out[k];
    }
  }
}

template <class T>
RunBlock find_for(OpId op) {
  if (op == OpId::add) return combine_block<AddIntegers, T>;
  if (op == OpId::sub) return combine_block<SubIntegers, T>;
  // Highway has no products of 8-bit and, on some targets, of 64-bit lanes.
  if constexpr (std::is_same_v<T, std::int32_t>) return op == OpId::mul ? combine_block<MulIntegers, T> : nullptr;
  return nullptr;
}

}  // namespace

RunBlock find_integers_of(OpId op, DataType dtype) {
  if (dtype == DataType::int64) return find_for<std::int64_t>(op);
  if (dtype == DataType::int32) return find_for<std::int32_t>(op);
  return dtype == DataType::int8 || dtype == DataType::uint8 ? find_for<std::int8_t>(op) : nullptr;
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_integers_of);

RunBlock find_binary_integers(OpId op, DataType dtype) { return HWY_DYNAMIC_DISPATCH(find_integers_of)(op, dtype); }

}  // namespace xpuruntime::cpu
#endif
