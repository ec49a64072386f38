#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/integers_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/plan.h"

// Integers of one type: sums, differences and products, which wrap, the larger and the smaller, and bits.

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

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

struct MaxIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Max(a, b);
  }
};
struct MinIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Min(a, b);
  }
};
struct AndIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::And(a, b);
  }
};
struct OrIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Or(a, b);
  }
};
struct XorIntegers {
  template <class V>
  static HWY_INLINE V of(V a, V b) {
    return hn::Xor(a, b);
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

/// Of lanes that Highway has no products of: 8 bits and, on some targets, 64.
struct MulAnyIntegers {};

template <class Function, class T>
requires std::is_same_v<Function, MulAnyIntegers>
void combine_row(const T* a, const T* b, T* out, std::int64_t n) {
  using Unsigned = std::make_unsigned_t<T>;
  for (std::int64_t i = 0; i < n; ++i) {
    out[i] = static_cast<T>(static_cast<Unsigned>(a[i]) * static_cast<Unsigned>(b[i]));
  }
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
  switch (op) {
    case OpId::add:
      return combine_block<AddIntegers, T>;
    case OpId::sub:
      return combine_block<SubIntegers, T>;
    case OpId::maximum:
      return combine_block<MaxIntegers, T>;
    case OpId::minimum:
      return combine_block<MinIntegers, T>;
    case OpId::mul:
      return combine_block<std::conditional_t<std::is_same_v<T, std::int32_t>, MulIntegers, MulAnyIntegers>, T>;
    default:
      return nullptr;
  }
}

/// Of any dtype of this size; booleans are bytes of 0 and 1.
template <class T>
RunBlock find_bits(OpId op) {
  switch (op) {
    case OpId::bitwise_and:
    case OpId::logical_and:
      return combine_block<AndIntegers, T>;
    case OpId::bitwise_or:
    case OpId::logical_or:
      return combine_block<OrIntegers, T>;
    default:
      return combine_block<XorIntegers, T>;
  }
}

bool works_on_bits(OpId op) { return bitwise_ops.contains(op) || logical_ops.contains(op); }

}  // namespace

RunBlock find_integers_of(OpId op, DataType dtype) {
  const bool bits = works_on_bits(op);
  switch (dtype) {
    case DataType::int64:
      return bits ? find_bits<std::int64_t>(op) : find_for<std::int64_t>(op);
    case DataType::int32:
      return bits ? find_bits<std::int32_t>(op) : find_for<std::int32_t>(op);
    case DataType::int8:
      return bits ? find_bits<std::uint8_t>(op) : find_for<std::int8_t>(op);
    case DataType::uint8:
      return bits ? find_bits<std::uint8_t>(op) : find_for<std::uint8_t>(op);
    case DataType::boolean:
      return bits ? find_bits<std::uint8_t>(op) : nullptr;
    default:
      return nullptr;
  }
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
