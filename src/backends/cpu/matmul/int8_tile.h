// The innermost loops of products of 8-bit integers. Has Highway's toggling guard: include it after simd.h.
#if defined(XRT_CPU_INT8_TILE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_INT8_TILE_H_
#undef XRT_CPU_INT8_TILE_H_
#else
#define XRT_CPU_INT8_TILE_H_
#endif

#include "backends/cpu/matmul/packed_tile.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

using Word = hn::ScalableTag<std::int32_t>;
using WordVec = hn::Vec<Word>;

// How 8-bit values are stored: what is added to each so that it fits, and taken back from the sum afterwards.
struct Shift {
  int rows = 0;
  int lanes = 0;
};

/// Two 16-bit values in each word: everything fits as it is.
struct Pairs {
  using Stored = std::int16_t;
  static Shift shift(bool, bool) { return {}; }

  HWY_INLINE static WordVec add(WordVec sum, WordVec rows, WordVec lanes) {
#if HWY_TARGET == HWY_AVX3
    return hn::Add(sum, WordVec{_mm512_madd_epi16(rows.raw, lanes.raw)});
#elif HWY_TARGET == HWY_AVX2
    return hn::Add(sum, WordVec{_mm256_madd_epi16(rows.raw, lanes.raw)});
#else
    const auto low = [](WordVec v) HWY_ATTR { return hn::ShiftRight<16>(hn::ShiftLeft<16>(v)); };
    sum = hn::Add(sum, hn::Mul(low(rows), low(lanes)));
    return hn::Add(sum, hn::Mul(hn::ShiftRight<16>(rows), hn::ShiftRight<16>(lanes)));
#endif
  }
};

#if HWY_TARGET == HWY_AVX3
/// VNNI: unsigned times signed bytes.
struct Quads {
  using Stored = std::uint8_t;
  static Shift shift(bool rows_signed, bool lanes_signed) { return {rows_signed ? 128 : 0, lanes_signed ? 0 : -128}; }

  __attribute__((always_inline, target(HWY_TARGET_STR ",avx512vnni"))) static WordVec add(WordVec sum, WordVec rows,
                                                                                          WordVec lanes) {
    return WordVec{_mm512_dpbusd_epi32(sum.raw, rows.raw, lanes.raw)};
  }
};
#define XRT_QUADS_ATTR __attribute__((target(HWY_TARGET_STR ",avx512vnni")))
#elif HWY_ARCH_ARM_A64
/// The dot product of Armv8.2: signed bytes.
struct Quads {
  using Stored = std::uint8_t;
  static Shift shift(bool rows_signed, bool lanes_signed) { return {rows_signed ? 0 : -128, lanes_signed ? 0 : -128}; }

  HWY_INLINE static WordVec add(WordVec sum, WordVec rows, WordVec lanes) {
    asm(".arch_extension dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(rows.raw), "w"(lanes.raw));
    return sum;
  }
};
#define XRT_QUADS_ATTR
#endif

/// c[rows, vectors * lanes] (+)= a b, where a and b hold words of 8-bit values along k.
template <class Dot, std::size_t rows, std::size_t vectors>
HWY_INLINE void multiply_words(const std::int32_t* HWY_RESTRICT a, const std::int32_t* HWY_RESTRICT b,
                               std::int64_t words, std::int32_t* HWY_RESTRICT c, std::int64_t c_step, bool accumulate) {
  return;
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
