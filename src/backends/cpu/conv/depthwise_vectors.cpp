#include "backends/cpu/conv/depthwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/depthwise_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
#include "backends/cpu/conv/products.h"
#include "backends/cpu/conv/rows.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

// Taps of one sum; those of larger windows are summed in runs, whose sums are added.
constexpr std::int64_t run_taps = 512;

/// The sums at `count` vectors of positions, side by side so that they share the weights and hide the latency. In runs
/// only where there are several: the plain loop keeps its sums in registers.
template <bool runs, int count>
HWY_INLINE void sum_vectors(const DepthwisePlane& plane, const float* const (&at)[count], F32Vec (&sums)[count]) {
  const F32 d;
  F32Vec totals[count];
  XRT_UNROLL
  for (int i = 0; i < count; ++i) {
    sums[i] = hn::Set(d, plane.bias);
    totals[i] = hn::Zero(d);
  }
  for (std::int64_t t = 0; t < plane.taps; ++t) {
    const F32Vec weight = hn::Set(d, plane.weights[t]);
    const std::int64_t offset = plane.offsets[t];
    XRT_UNROLL
    for (int i = 0; i < count; ++i) sums[i] = hn::MulAdd(weight, hn::LoadU(d, at[i] + offset), sums[i]);
    if (!runs || (t + 1) % run_taps != 0) continue;
    XRT_UNROLL
    for (int i = 0; i < count; ++i) {
      totals[i] = hn::Add(totals[i], sums[i]);
      sums[i] = hn::Zero(d);
    }
  }
  if constexpr (runs) {
    XRT_UNROLL
    for (int i = 0; i < count; ++i) sums[i] = hn::Add(totals[i], sums[i]);
  }
}

constexpr int together = 4;

/// Rows of at least a vector. The last vector of a row overlaps the one before it: the same sums, stored twice.
template <bool runs, class T>
void run_rows(const DepthwisePlane& plane) {
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  const std::int64_t per_row = (plane.width + lanes - 1) / lanes, vectors = per_row * plane.height;
  std::int64_t x = 0, y = 0;
  for (std::int64_t i = 0; i < vectors; i += together) {
    const float* at[together];
    T* to[together];
    XRT_UNROLL
    for (int j = 0; j < together; ++j) {
      const std::int64_t from = std::min(x, plane.width - lanes);
      at[j] = plane.inputs + y * plane.row + from;
      to[j] = static_cast<T*>(plane.out) + y * plane.width + from;
      // Past the end the last vector is done again.
      if (i + j + 1 >= vectors) continue;
      x += lanes;
      if (x >= plane.width) x = 0, ++y;
    }
    F32Vec sums[together];
    sum_vectors<runs, together>(plane, at, sums);
    XRT_UNROLL
    for (int j = 0; j < together; ++j) store(sums[j], to[j]);
  }
}

/// Rows shorter than a vector: vectors run across their ends, and the rows are picked out afterwards.
template <bool runs, class T>
void run_flat(const DepthwisePlane& plane) {
  const F32 d;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes()), step = together * lanes;
  const std::int64_t positions = (plane.height - 1) * plane.row + plane.width;
  HWY_ALIGN float buffer[(together + 1) * hn::MaxLanes(F32())];
  for (std::int64_t begin = 0; begin < positions; begin += step) {
    const float* at[together];
    // Vectors that lie past the end are done again at the start of this step.
    for (int j = 0; j < together; ++j) at[j] = plane.inputs + begin + (begin + j * lanes < positions ? j * lanes : 0);
    F32Vec sums[together];
    sum_vectors<runs, together>(plane, at, sums);
    for (int j = 0; j < together; ++j) hn::StoreU(sums[j], d, buffer + j * lanes);
    const std::int64_t end = std::min(begin + step, positions);
    for (std::int64_t y = begin / plane.row; y * plane.row < end; ++y) {
      const std::int64_t from = std::max(begin, y * plane.row), to = std::min(end, y * plane.row + plane.width);
      if (from >= to) continue;
      put_row(buffer + from - begin, static_cast<T*>(plane.out) + y * plane.width + from - y * plane.row, to - from);
    }
  }
}

template <bool runs, class T>
void run_sums(const DepthwisePlane& plane) {
  if (plane.width >= static_cast<std::int64_t>(f32_lanes())) return run_rows<runs, T>(plane);
  run_flat<runs, T>(plane);
}

template <class T>
void run_plane(const DepthwisePlane& plane) {
  plane.taps > run_taps ? run_sums<true, T>(plane) : run_sums<false, T>(plane);
}

void run_plane_f32(const DepthwisePlane& plane) { run_plane<float>(plane); }
void run_plane_f16(const DepthwisePlane& plane) { run_plane<Half>(plane); }
void run_plane_bf16(const DepthwisePlane& plane) { run_plane<Bfloat>(plane); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(run_plane_f32);
HWY_EXPORT(run_plane_f16);
HWY_EXPORT(run_plane_bf16);

void run_depthwise_plane(const DepthwisePlane& plane, DataType out) {
  if (out == DataType::float16) return HWY_DYNAMIC_DISPATCH(run_plane_f16)(plane);
  if (out == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(run_plane_bf16)(plane);
  HWY_DYNAMIC_DISPATCH(run_plane_f32)(plane);
}

}  // namespace xpuruntime::cpu
#endif
