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

// In assembly: the instructions are newer than the targets that this file is compiled for. Callers have asked the CPU.
#if HWY_TARGET == HWY_AVX3
/// VNNI: unsigned times signed bytes.
struct Quads {
  using Stored = std::uint8_t;
  static Shift shift(bool rows_signed, bool lanes_signed) { return {rows_signed ? 128 : 0, lanes_signed ? 0 : -128}; }

  HWY_INLINE static WordVec add(WordVec sum, WordVec rows, WordVec lanes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(rows.raw), "v"(lanes.raw));
    return sum;
  }
};
#elif HWY_ARCH_ARM_A64
/// The dot product of Armv8.2: signed bytes.
struct Quads {
  using Stored = std::uint8_t;
  static Shift shift(bool rows_signed, bool lanes_signed) { return {rows_signed ? 0 : -128, lanes_signed ? 0 : -128}; }

  HWY_INLINE static WordVec add(WordVec sum, WordVec rows, WordVec lanes) {
#if defined(__ARM_FEATURE_DOTPROD)
    asm("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(rows.raw), "w"(lanes.raw));
#else
    // The assembler must be told; the compiler tells it again what it may use before the next function.
    asm(".arch armv8.2-a+crypto+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum.raw) : "w"(rows.raw), "w"(lanes.raw));
#endif
    return sum;
  }
};
#else
using Quads = Pairs;
#endif

/// c[rows, vectors * lanes] (+)= a b, where a and b hold words of values along k. Rows of a are row_step words apart.
template <class Dot, std::size_t rows, std::size_t vectors>
void multiply_words(const std::int32_t* HWY_RESTRICT a, const std::int32_t* HWY_RESTRICT b, std::int64_t words,
                    std::int32_t* HWY_RESTRICT c, std::int64_t c_step, bool accumulate) {
  const std::size_t lanes = hn::Lanes(Word());
  WordVec sums[rows][vectors];
  unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY {
      const std::int32_t* old = c + static_cast<std::int64_t>(i) * c_step + v * lanes;
      sums[i][v] = accumulate ? hn::LoadU(Word(), old) : hn::Zero(Word());
    });
  });
  for (std::int64_t p = 0; p < words; ++p) {
    WordVec right[vectors];
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { right[v] = hn::LoadU(Word(), b + v * lanes); });
    unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
      const WordVec left = hn::Set(Word(), a[i * row_step]);
      unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY { sums[i][v] = Dot::add(sums[i][v], left, right[v]); });
      keep_order();
    });
    ++a;
    b += vectors * lanes;
  }
  unrolled<rows>([&](auto i) XRT_UNROLLED_BODY {
    unrolled<vectors>([&](auto v) XRT_UNROLLED_BODY {
      hn::StoreU(sums[i][v], Word(), c + static_cast<std::int64_t>(i) * c_step + v * lanes);
    });
  });
}

using MultiplyWords = void (*)(const std::int32_t*, const std::int32_t*, std::int64_t, std::int32_t*, std::int64_t,
                               bool);

template <class Dot, std::size_t vectors, std::size_t... rows>
constexpr std::array<MultiplyWords, sizeof...(rows)> word_tiles_of_width(std::index_sequence<rows...>) {
  return {multiply_words<Dot, rows + 1, vectors>...};
}

template <class Dot, std::size_t... vectors>
constexpr std::array<std::array<MultiplyWords, tile_rows>, sizeof...(vectors)> all_word_tiles(
    std::index_sequence<vectors...>) {
  return {word_tiles_of_width<Dot, vectors + 1>(std::make_index_sequence<tile_rows>())...};
}

template <class Dot>
HWY_INLINE MultiplyWords word_tile_for(std::int64_t rows, std::int64_t vectors) {
  static constexpr auto table = all_word_tiles<Dot>(std::make_index_sequence<tile_vectors>());
  return table[static_cast<std::size_t>(vectors - 1)][static_cast<std::size_t>(rows - 1)];
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
