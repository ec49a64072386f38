#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/decoder/rope_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "backends/cpu/decoder/plan.h"
#include "backends/cpu/elementwise/chunk.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// a becomes a cos - b sin, and b becomes b cos + a sin.
HWY_INLINE void rotate(F32Vec& a, F32Vec& b, F32Vec cos, F32Vec sin) {
  const F32Vec first = hn::NegMulAdd(b, sin, hn::Mul(a, cos));
  b = hn::MulAdd(a, sin, hn::Mul(b, cos));
  a = first;
}

template <class T>
void rotate_halves(const T* a, const T* b, T* out_a, T* out_b, const float* cos, const float* sin, std::int64_t n) {
  for_vectors(n, [&](std::size_t i, auto get, auto put) HWY_ATTR {
    F32Vec x = get(a + i), y = get(b + i);
    rotate(x, y, get(cos + i), get(sin + i));
    put(x, out_a + i);
    put(y, out_b + i);
  });
}

/// Pairs of neighbours, at most chunk_size of them, by way of a buffer in f32.
template <class T>
void rotate_neighbours(const T* in, T* out, const float* cos, const float* sin, std::int64_t n) {
  HWY_ALIGN float pairs[2 * (chunk_size + hn::MaxLanes(F32()))];
  const auto elements = static_cast<std::size_t>(2 * n);
  std::fill_n(pairs + elements, 2 * f32_lanes(), 0.0f);
  for_vectors(elements, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(in + i), pairs + i); });
  for_vectors(n, [&](std::size_t i, auto get, auto) HWY_ATTR {
    F32Vec x, y;
    hn::LoadInterleaved2(F32(), pairs + 2 * i, x, y);
    rotate(x, y, get(cos + i), get(sin + i));
    hn::StoreInterleaved2(x, y, F32(), pairs + 2 * i);
  });
  for_vectors(elements, [&](std::size_t i, auto get, auto put) HWY_ATTR { put(get(pairs + i), out + i); });
}

template <class T>
void rotate_heads(const RopeToken& token) {
  HWY_ALIGN float cos_buffer[chunk_size], sin_buffer[chunk_size];
  for (std::int64_t at = 0; at < token.pairs; at += chunk_size) {
    const std::int64_t n = std::min(chunk_size, token.pairs - at);
    const float* cos = widened(row_of(token.cos, 0, at), n, cos_buffer);
    const float* sin = widened(row_of(token.sin, 0, at), n, sin_buffer);
    for (std::int64_t head = 0; head < token.heads; ++head) {
      const auto* in = static_cast<const T*>(token.in.data) + head * token.in.row;
      auto* out = static_cast<T*>(token.out.data) + head * token.out.row;
      if (token.interleaved) {
        rotate_neighbours(in + 2 * at, out + 2 * at, cos, sin, n);
      } else {
        rotate_halves(in + at, in + token.pairs + at, out + at, out + token.pairs + at, cos, sin, n);
      }
    }
  }
  if (token.in.data == token.out.data) return;
  const std::int64_t turned = 2 * token.pairs;
  for (std::int64_t head = 0; head < token.heads; ++head) {
    std::memcpy(static_cast<T*>(token.out.data) + head * token.out.row + turned,
                static_cast<const T*>(token.in.data) + head * token.in.row + turned,
                static_cast<std::size_t>(token.size - turned) * sizeof(T));
  }
}

}  // namespace

void rope_token(const RopeToken& token) {
  with_storage(token.in.dtype, [&](auto storage) { rotate_heads<decltype(storage)>(token); });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(rope_token);

void rotate_token(const RopeToken& token) { HWY_DYNAMIC_DISPATCH(rope_token)(token); }

}  // namespace xpuruntime::cpu
#endif
