// Vectors of f32 from and to memory in f32, f16 or bf16. Included once for each target that Highway compiles for, so it
// has Highway's toggling guard. A file with kernels looks like this:
//
//   #undef HWY_TARGET_INCLUDE
//   #define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unary_vectors.cpp"  // itself
//   #include <hwy/foreach_target.h>  // must come before highway.h
//   #include <hwy/highway.h>
//
//   #include "backends/cpu/base/simd.h"
//   HWY_BEFORE_NAMESPACE();
//   namespace xpuruntime::cpu {
//   namespace HWY_NAMESPACE {
//   void scale(const float* in, float* out, std::size_t n) { ... }
//   }  // namespace HWY_NAMESPACE
//   }  // namespace xpuruntime::cpu
//   HWY_AFTER_NAMESPACE();
//   #if HWY_ONCE
//   namespace xpuruntime::cpu {
//   HWY_EXPORT(scale);
//   ... HWY_DYNAMIC_DISPATCH(scale)(in, out, n) ...
//   }  // namespace xpuruntime::cpu
//   #endif
#if defined(XRT_CPU_SIMD_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_SIMD_H_
#undef XRT_CPU_SIMD_H_
#else
#define XRT_CPU_SIMD_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "backends/cpu/base/storage.h"
#include "xpuruntime/core/float_formats.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using F32Vec = hn::Vec<F32>;

inline std::size_t f32_lanes() { return hn::Lanes(F32()); }

// Full vectors; the memory need not be aligned.

#if HWY_ARCH_X86 && HWY_TARGET != HWY_AVX2 && HWY_TARGET != HWY_AVX3

// No instructions for binary16, and Highway's stand-in for them does not know infinity and NaN.
HWY_INLINE F32Vec load(const Half* from) {
  HWY_ALIGN float values[hn::MaxLanes(F32())];
  for (std::size_t i = 0; i < f32_lanes(); ++i) values[i] = static_cast<float>(decode_float16(from[i].bits));
  return hn::Load(F32(), values);
}

HWY_INLINE void store(F32Vec value, Half* to) {
  HWY_ALIGN float values[hn::MaxLanes(F32())];
  hn::Store(value, F32(), values);
  for (std::size_t i = 0; i < f32_lanes(); ++i) to[i].bits = encode_float16(values[i]);
}

#else

HWY_INLINE F32Vec load(const Half* from) {
  const hn::Rebind<hwy::float16_t, F32> d16;
  return hn::PromoteTo(F32(), hn::LoadU(d16, reinterpret_cast<const hwy::float16_t*>(from)));
}

HWY_INLINE void store(F32Vec value, Half* to) {
  const hn::Rebind<hwy::float16_t, F32> d16;
  hn::StoreU(hn::DemoteTo(d16, value), d16, reinterpret_cast<hwy::float16_t*>(to));
}

#endif

HWY_INLINE F32Vec load(const float* from) { return hn::LoadU(F32(), from); }

HWY_INLINE F32Vec load(const Bfloat* from) {
  const hn::Rebind<std::uint16_t, F32> d16;
  const hn::Repartition<std::uint32_t, F32> d32;
  const auto wide = hn::PromoteTo(d32, hn::LoadU(d16, reinterpret_cast<const std::uint16_t*>(from)));
  return hn::BitCast(F32(), hn::ShiftLeft<16>(wide));
}

HWY_INLINE void store(F32Vec value, float* to) { hn::StoreU(value, F32(), to); }

// Rounds to nearest, ties to even; Highway's own demotion cuts off. NaN stays NaN: its payload must not round away.
HWY_INLINE void store(F32Vec value, Bfloat* to) {
  const hn::Rebind<std::uint16_t, F32> d16;
  const hn::Repartition<std::uint32_t, F32> d32;
  const auto bits = hn::BitCast(d32, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 1u));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fffu)));
  const auto quiet = hn::Or(bits, hn::Set(d32, 0x400000u));
  const auto is_nan = hn::RebindMask(d32, hn::IsNaN(value));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  hn::StoreU(hn::TruncateTo(d16, upper), d16, reinterpret_cast<std::uint16_t*>(to));
}

// The first n < lanes elements, the rest zeros; never touches memory past them.

template <class T>
HWY_INLINE F32Vec load_first(const T* from, std::size_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(F32())] = {};
#if HWY_MEM_OPS_MIGHT_FAULT
  std::memcpy(buffer, from, n * sizeof(T));
#else
  // Masked, and stored whole: a copy of n bytes is a call, and a load from it waits for all of its parts.
  using Bits = hwy::UnsignedFromSize<sizeof(T)>;
  const hn::Rebind<Bits, F32> d;
  hn::Store(hn::MaskedLoad(hn::FirstN(d, n), d, reinterpret_cast<const Bits*>(from)), d,
            reinterpret_cast<Bits*>(buffer));
#endif
  return load(buffer);
}

template <class T>
HWY_INLINE void store_first(F32Vec value, T* to, std::size_t n) {
  HWY_ALIGN T buffer[hn::MaxLanes(F32())];
  store(value, buffer);
#if HWY_MEM_OPS_MIGHT_FAULT
  std::memcpy(to, buffer, n * sizeof(T));
#else
  using Bits = hwy::UnsignedFromSize<sizeof(T)>;
  const hn::Rebind<Bits, F32> d;
  hn::BlendedStore(hn::Load(d, reinterpret_cast<const Bits*>(buffer)), hn::FirstN(d, n), d,
                   reinterpret_cast<Bits*>(to));
#endif
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2  // masks that keep their hands off what they leave out

HWY_INLINE F32Vec load_first(const float* from, std::size_t n) {
  return hn::MaskedLoad(hn::FirstN(F32(), n), F32(), from);
}

HWY_INLINE void store_first(F32Vec value, float* to, std::size_t n) {
  hn::BlendedStore(value, hn::FirstN(F32(), n), F32(), to);
}

#endif

/// Goes over n elements in vectors, then over the tail with the same operations: body(offset, load, store), where
/// load(pointer) and store(vector, pointer) reach the lanes from that offset on that exist.
template <class Body>
HWY_INLINE void for_vectors(std::size_t n, const Body& body) {
  const std::size_t lanes = f32_lanes();
  std::size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    body(
        i, [](const auto* from) HWY_ATTR { return load(from); },
        [](F32Vec value, auto* to) HWY_ATTR { store(value, to); });
  }
  if (const std::size_t left = n - i; left != 0) {
    body(
        i, [left](const auto* from) HWY_ATTR { return load_first(from, left); },
        [left](F32Vec value, auto* to) HWY_ATTR { store_first(value, to, left); });
  }
}

/// Takes n elements that lie `step` apart; 0: the first one n times.
template <class T>
void gather(const T* from, std::int64_t step, std::int64_t n, T* to) {
  std::int64_t i = 0;
#if HWY_TARGET != HWY_SCALAR
  // Of two to four neighbours the first ones. The last vector ends behind its last element, where there is memory only
  // if another element follows.
  using U32 = hn::Repartition<std::uint32_t, F32>;
  const U32 d;
  const auto lanes = static_cast<std::int64_t>(hn::Lanes(d));
  if constexpr (sizeof(T) == 4) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(from);
    for (; step == 2 && i + lanes < n; i += lanes) {
      const auto low = hn::LoadU(d, words + 2 * i), high = hn::LoadU(d, words + 2 * i + lanes);
      hn::StoreU(hn::ConcatEven(d, high, low), d, reinterpret_cast<std::uint32_t*>(to) + i);
    }
    hn::Vec<U32> first, other[3];
    for (; step == 3 && i + lanes < n; i += lanes) {
      hn::LoadInterleaved3(d, words + 3 * i, first, other[0], other[1]);
      hn::StoreU(first, d, reinterpret_cast<std::uint32_t*>(to) + i);
    }
    for (; step == 4 && i + lanes < n; i += lanes) {
      hn::LoadInterleaved4(d, words + 4 * i, first, other[0], other[1], other[2]);
      hn::StoreU(first, d, reinterpret_cast<std::uint32_t*>(to) + i);
    }
  } else if constexpr (sizeof(T) == 2) {
    const hn::Rebind<std::uint16_t, U32> d16;
    const hn::Repartition<std::uint16_t, U32> both;  // loaded as what they are: no word need be aligned as one
    for (; step == 2 && i + lanes < n; i += lanes) {
      const auto pairs = hn::BitCast(d, hn::LoadU(both, reinterpret_cast<const std::uint16_t*>(from) + 2 * i));
      hn::StoreU(hn::TruncateTo(d16, pairs), d16, reinterpret_cast<std::uint16_t*>(to) + i);
    }
  }
#endif
  if (step == 0) {
    std::fill_n(to, n, *from);
    return;
  }
  for (; i < n; ++i) to[i] = from[i * step];
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
