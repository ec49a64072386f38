#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/dropout_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>

#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/dropout.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

using U32 = hn::Repartition<std::uint32_t, F32>;
using U32Vec = hn::Vec<U32>;

#if HWY_TARGET == HWY_SCALAR  // has one lane, and products need two

HWY_INLINE void random_words(std::uint64_t key, std::uint64_t counter, std::uint32_t* words) {
  const auto made = Philox::words(key, counter);
  std::copy(made.begin(), made.end(), words);
}

#else

/// The upper and lower words of the products of all lanes.
HWY_INLINE void multiply(U32Vec a, U32Vec b, U32Vec& upper, U32Vec& lower) {
  using U64 = hn::Repartition<std::uint64_t, F32>;
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(U32(), hn::ShiftRight<32>(hn::BitCast(U64(), a))), b);
  upper = hn::OddEven(hn::BitCast(U32(), odd), hn::BitCast(U32(), hn::ShiftRight<32>(even)));
  lower = hn::OddEven(hn::BitCast(U32(), hn::ShiftLeft<32>(odd)), hn::BitCast(U32(), even));
}

/// The words of as many counters as there are lanes, from `counter` on, in order.
HWY_INLINE void random_words(std::uint64_t key, std::uint64_t counter, std::uint32_t* words) {
  const U32 d;
  const U32Vec low = hn::Iota(d, static_cast<std::uint32_t>(counter));
  const U32Vec carry = hn::VecFromMask(d, hn::Lt(low, hn::Set(d, static_cast<std::uint32_t>(counter))));
  U32Vec c0 = low, c1 = hn::Sub(hn::Set(d, static_cast<std::uint32_t>(counter >> 32)), carry);
  U32Vec c2 = hn::Zero(d), c3 = hn::Zero(d);
  auto key_0 = static_cast<std::uint32_t>(key), key_1 = static_cast<std::uint32_t>(key >> 32);
  for (int i = 0; i < Philox::rounds; ++i) {
    U32Vec upper_0, lower_0, upper_1, lower_1;
    multiply(c0, hn::Set(d, Philox::multiplier_0), upper_0, lower_0);
    multiply(c2, hn::Set(d, Philox::multiplier_1), upper_1, lower_1);
    c0 = hn::Xor(hn::Xor(upper_1, c1), hn::Set(d, key_0));
    c1 = lower_1;
    c2 = hn::Xor(hn::Xor(upper_0, c3), hn::Set(d, key_1));
    c3 = lower_0;
    key_0 += Philox::step_0;
    key_1 += Philox::step_1;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}

#endif

// The words of a chunk that starts anywhere inside a counter, up to whole vectors of counters.
constexpr std::size_t most_words = chunk_size + 3 + 4 * hn::MaxLanes(F32());

const std::uint32_t* words_from(std::uint64_t key, std::uint64_t index, std::size_t n, std::uint32_t* buffer) {
  const std::size_t skipped = index % 4, step = 4 * f32_lanes();
  for (std::size_t i = 0; i < skipped + n; i += step) random_words(key, (index + i) / 4, buffer + i);
  return buffer + skipped;
}

void drop_row(const float* in, const std::uint32_t* words, const DropoutCall& call, float* out, std::size_t n) {
  const F32Vec share = hn::Set(F32(), static_cast<float>(call.kept_share));
  const U32Vec threshold = hn::Set(U32(), static_cast<std::uint32_t>(call.threshold));
  const std::size_t lanes = f32_lanes();
  for (std::size_t i = 0; i < n; i += lanes) {
    const auto kept = hn::RebindMask(F32(), hn::Not(hn::Lt(hn::LoadU(U32(), words + i), threshold)));
    const F32Vec x = i + lanes <= n ? load(in + i) : load_first(in + i, n - i);
    store(hn::IfThenElseZero(kept, hn::Div(x, share)), out + i);
  }
}

}  // namespace

void drop_block(const Block& block, const DropoutCall& call, std::uint64_t index) {
  HWY_ALIGN float in[chunk_size], out[chunk_size];
  HWY_ALIGN std::uint32_t buffer[most_words];
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    const float* x = widened(row_of(block.a, i, j), n, in);
    const std::uint64_t first = index + static_cast<std::uint64_t>(i * block.columns + j);
    const BlockOperand to = row_of(block.out, i, j);
    if (call.threshold >> 32 != 0) {
      std::fill_n(out, n, 0.0f);
    } else {
      drop_row(x, words_from(call.seed, first, n, buffer), call, out, n);
    }
    narrowed(out, to, n);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(drop_block);

void dropout_of_block(const Block& block, const DropoutCall& call, std::uint64_t index) {
  HWY_DYNAMIC_DISPATCH(drop_block)(block, call, index);
}

}  // namespace xpuruntime::cpu
#endif
