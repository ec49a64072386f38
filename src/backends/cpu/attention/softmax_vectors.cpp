#include "backends/cpu/attention/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/attention/softmax_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "backends/cpu/base/math.h"
#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// 2^t for t up to 0; -infinity gives 0 and NaN stays.
template <bool short_polynomial>
HWY_INLINE F32Vec exp2_of_negative(F32Vec t) {
  // Beside a weight of 1 these are nothing, and making a denormal of each masked key costs more than all the rest.
  const auto nothing = hn::Lt(t, constant(-126.0f));
#if XRT_CPU_X86_MIN_MAX
  t = hn::Max(constant(-126.0f), t);  // gives its second operand where one is NaN
#else
  t = hn::IfThenElse(nothing, constant(-126.0f), t);
#endif
  const F32Vec n_plus_magic = hn::Add(t, constant(round_magic));
  const F32Vec f = hn::Sub(t, hn::Sub(n_plus_magic, constant(round_magic)));
  // Minimax for 2^f with f in [-1/2, 1/2]; exactly 1 at 0. Relative errors 3.6e-6 and 2.2e-8.
  if constexpr (short_polynomial) {
    return hn::IfThenZeroElse(
        nothing,
        scaled(polynomial(f, 1.0f, 0x1.62dfcap-1f, 0x1.ebf1b4p-3f, 0x1.ca9008p-5f, 0x1.409104p-7f), n_plus_magic));
  } else {
    return hn::IfThenZeroElse(nothing, scaled(polynomial(f, 1.0f, 0x1.62e432p-1f, 0x1.ebfbe2p-3f, 0x1.c6ae72p-5f,
                                                         0x1.3b270ep-7f, 0x1.5f7276p-10f, 0x1.470b4ap-13f),
                                              n_plus_magic));
  }
}

HWY_INLINE float highest_of_row(const float* scores, std::int64_t columns) {
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  F32Vec a = load(scores), b = load(scores + lanes);
  for (std::int64_t j = 2 * lanes; j < columns; j += 2 * lanes) {
    a = hn::Max(a, load(scores + j));
    b = hn::Max(b, load(scores + j + lanes));
  }
  return hn::GetLane(hn::MaxOfLanes(F32(), hn::Max(a, b)));
}

/// Takes the new maxima into `highest` and finds what older weights are to be multiplied by.
HWY_INLINE bool raise_highest(const SoftmaxBlock& block, const float* raw) {
  const F32Vec factor = constant(block.factor), one = constant(1), none = constant(hwy::LowestValue<float>());
  bool changed = false;
  for_vectors(static_cast<std::size_t>(block.rows), [&](std::size_t i, auto get, auto put) HWY_ATTR {
    const F32Vec old = get(block.highest + i);
    const F32Vec highest = hn::Max(old, load(raw + i));
    // A row that has seen no key yet: a finite number in the place of -infinity keeps differences from being NaN.
    const F32Vec base = hn::IfThenElse(hn::Lt(highest, none), constant(0), highest);
    const F32Vec rescale = exp2_of_negative<false>(hn::Mul(hn::Sub(old, base), factor));
    put(highest, block.highest + i);
    put(rescale, block.rescale + i);
    // Lanes past the last row load as zeros: their factor is 1 unless raw is above 0 there, and it is not.
    changed = changed || !hn::AllTrue(F32(), hn::Eq(rescale, one));
  });
  return changed;
}

/// The difference first: the highest score times the factor would have to be rounded, and where scores are large its
/// rounding alone would be more than all weights are apart.
template <bool narrow>
HWY_INLINE F32Vec weight_of(const float* score, F32Vec highest, F32Vec factor) {
  return exp2_of_negative<narrow>(hn::Mul(hn::Sub(load(score), highest), factor));
}

template <bool narrow>
HWY_INLINE float weigh_row(float* scores, std::int64_t columns, float factor, float highest) {
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  const float base = highest < hwy::LowestValue<float>() ? 0.0f : highest;
  const F32Vec scale = constant(factor), shift = constant(base);
  F32Vec sum_a = constant(0), sum_b = constant(0);
  if constexpr (narrow) {
    const hn::Repartition<std::uint32_t, F32> d32;
    const auto half = hn::Set(d32, 0x8000u), upper = hn::Set(d32, 0xffff0000u);
    for (std::int64_t first = 0; first < columns; first += 32) {
      for (std::int64_t i = 0; i < 16; i += lanes) {
        const F32Vec a = weight_of<true>(scores + first + i, shift, scale);
        const F32Vec b = weight_of<true>(scores + first + 16 + i, shift, scale);
        sum_a = hn::Add(sum_a, a);
        sum_b = hn::Add(sum_b, b);
        const auto low = hn::ShiftRight<16>(hn::Add(hn::BitCast(d32, a), half));
        const auto high = hn::And(hn::Add(hn::BitCast(d32, b), half), upper);
        store(hn::BitCast(F32(), hn::Or(low, high)), scores + first / 2 + i);
      }
    }
  } else {
    for (std::int64_t j = 0; j < columns; j += 2 * lanes) {
      const F32Vec a = weight_of<false>(scores + j, shift, scale);
      const F32Vec b = weight_of<false>(scores + j + lanes, shift, scale);
      sum_a = hn::Add(sum_a, a);
      sum_b = hn::Add(sum_b, b);
      store(a, scores + j);
      store(b, scores + j + lanes);
    }
  }
  return hn::GetLane(hn::SumOfLanes(F32(), hn::Add(sum_a, sum_b)));
}

template <bool narrow>
HWY_INLINE bool step(const SoftmaxBlock& block) {
  HWY_ALIGN float raw[softmax_rows + 16] = {};
  for (std::int64_t i = 0; i < block.rows; ++i) raw[i] = highest_of_row(block.scores + i * block.row, block.columns);
  const bool changed = raise_highest(block, raw);
  for (std::int64_t i = 0; i < block.rows; ++i) {
    const float sum = weigh_row<narrow>(block.scores + i * block.row, block.columns, block.factor, block.highest[i]);
    block.sums[i] = block.sums[i] * block.rescale[i] + sum;
  }
  return changed;
}

bool step_f32(const SoftmaxBlock& block) { return step<false>(block); }
bool step_bf16(const SoftmaxBlock& block) { return step<true>(block); }

/// One vector of masked scores. Bytes are widened to find the zeros among them.
HWY_INLINE F32Vec masked(F32Vec score, F32Vec scale, const float* mask) { return hn::MulAdd(score, scale, load(mask)); }
HWY_INLINE F32Vec masked(F32Vec score, F32Vec scale, const Half* mask) { return hn::MulAdd(score, scale, load(mask)); }
HWY_INLINE F32Vec masked(F32Vec score, F32Vec scale, const Bfloat* mask) {
  return hn::MulAdd(score, scale, load(mask));
}
HWY_INLINE F32Vec masked(F32Vec score, F32Vec scale, const std::uint8_t* mask) {
  const hn::Rebind<std::uint8_t, F32> d8;
  const auto wide = hn::PromoteTo(I32(), hn::LoadU(d8, mask));
  const auto out = hn::RebindMask(F32(), hn::Eq(wide, hn::Zero(I32())));
  return hn::IfThenElse(out, hn::Neg(hn::Inf(F32())), hn::Mul(score, scale));
}

template <class T>
HWY_INLINE void mask_typed(float* scores, std::int64_t n, float factor, const T* mask, std::int64_t stride) {
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  const F32Vec scale = constant(factor);
  for (std::int64_t j = 0; j < n; j += lanes) {
    const std::int64_t count = std::min(lanes, n - j);
    if (stride == 1 && count == lanes) {
      store(masked(load(scores + j), scale, mask + j), scores + j);
      continue;
    }
    HWY_ALIGN T buffer[hn::MaxLanes(F32())] = {};
    for (std::int64_t i = 0; i < count; ++i) buffer[i] = mask[(j + i) * stride];
    const auto left = static_cast<std::size_t>(count);
    const F32Vec score = count == lanes ? load(scores + j) : load_first(scores + j, left);
    const F32Vec result = masked(score, scale, buffer);
    count == lanes ? store(result, scores + j) : store_first(result, scores + j, left);
  }
}

void mask_row(float* scores, std::int64_t n, float scale, const MaskRow& mask) {
  if (mask.dtype == DataType::boolean) {
    return mask_typed(scores, n, scale, static_cast<const std::uint8_t*>(mask.data), mask.stride);
  }
  with_storage(mask.dtype, [&](auto type) HWY_ATTR {
    mask_typed(scores, n, scale, static_cast<const decltype(type)*>(mask.data), mask.stride);
  });
}

void multiply_rows(float* data, std::int64_t row, std::int64_t rows, std::int64_t width, const float* factors) {
  for (std::int64_t i = 0; i < rows; ++i) {
    if (factors[i] == 1) continue;
    const F32Vec factor = constant(factors[i]);
    float* const line = data + i * row;
    for_vectors(static_cast<std::size_t>(width),
                [&](std::size_t j, auto get, auto put) HWY_ATTR { put(hn::Mul(get(line + j), factor), line + j); });
  }
}

void finish_row(const float* sums, float weight, std::int64_t width, void* out, DataType dtype) {
  const F32Vec factor = constant(1 / weight);
  with_storage(dtype, [&](auto type) HWY_ATTR {
    auto* const to = static_cast<decltype(type)*>(out);
    for_vectors(static_cast<std::size_t>(width), [&](std::size_t j, auto get, auto put) HWY_ATTR {
      put(weight == 0 ? constant(0) : hn::Mul(get(sums + j), factor), to + j);  // sums without a key are anything
    });
  });
}

void widen(const void* from, DataType dtype, std::int64_t n, float* to) {
  with_storage(dtype, [&](auto type) HWY_ATTR {
    const auto* const source = static_cast<const decltype(type)*>(from);
    for_vectors(static_cast<std::size_t>(n),
                [&](std::size_t j, auto get, auto put) HWY_ATTR { put(get(source + j), to + j); });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {
HWY_EXPORT(step_f32);
HWY_EXPORT(step_bf16);
HWY_EXPORT(mask_row);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(finish_row);
HWY_EXPORT(widen);

bool softmax_step(const SoftmaxBlock& block) { return HWY_DYNAMIC_DISPATCH(step_f32)(block); }
bool softmax_step_bf16(const SoftmaxBlock& block) { return HWY_DYNAMIC_DISPATCH(step_bf16)(block); }

void mask_scores(float* scores, std::int64_t n, float scale, const MaskRow& mask) {
  HWY_DYNAMIC_DISPATCH(mask_row)(scores, n, scale, mask);
}

void hide_scores(float* scores, std::int64_t first, std::int64_t end) {
  if (first < end) std::fill(scores + first, scores + end, -std::numeric_limits<float>::infinity());
}

void rescale_rows(float* data, std::int64_t row, std::int64_t rows, std::int64_t width, const float* factors) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(data, row, rows, width, factors);
}

void store_row(const float* sums, float weight, std::int64_t width, void* out, DataType dtype) {
  HWY_DYNAMIC_DISPATCH(finish_row)(sums, weight, width, out, dtype);
}

void widen_row(const void* from, DataType dtype, std::int64_t n, float* to) {
  HWY_DYNAMIC_DISPATCH(widen)(from, dtype, n, to);
}

}  // namespace xpuruntime::cpu
#endif
