// Sums of products held in registers: the inner loop of the convolutions. Included once for each target, as simd.h is.
#if defined(XRT_CPU_CONV_PRODUCTS_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_CONV_PRODUCTS_H_
#undef XRT_CPU_CONV_PRODUCTS_H_
#else
#define XRT_CPU_CONV_PRODUCTS_H_
#endif

#include <cstdint>

#include "backends/cpu/base/simd.h"

// The loops over registers must vanish, or the sums would live in memory.
#if defined(__clang__)
#define XRT_UNROLL _Pragma("clang loop unroll(full)")
#else
#define XRT_UNROLL _Pragma("GCC unroll 8")
#endif

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// sums[r][p] += the sum of weights[r][k] * inputs[offsets[k] + p] over all k in order, from zero on, for `rows` rows
/// and some vectors of p.
struct Products {
  const float* weights = nullptr;
  std::int64_t weights_row = 0;
  const float* inputs = nullptr;
  const std::int32_t* offsets = nullptr;
  std::int64_t count = 0;  // of k
  float* sums = nullptr;
  std::int64_t sums_row = 0;
  bool fresh = false;  // write instead of adding to what is in `sums`
};

template <int rows, int vectors>
HWY_NOINLINE void add_products(const Products& p) {
  const F32 d;
  const std::int64_t lanes = static_cast<std::int64_t>(f32_lanes());
  F32Vec sums[rows][vectors];
  const float* weights[rows];
  XRT_UNROLL
  for (int r = 0; r < rows; ++r) {
    weights[r] = p.weights + r * p.weights_row;
    XRT_UNROLL
    for (int v = 0; v < vectors; ++v) sums[r][v] = hn::Zero(d);
  }
  for (std::int64_t k = 0; k < p.count; ++k) {
    const float* inputs = p.inputs + p.offsets[k];
    F32Vec in[vectors];
    XRT_UNROLL
    for (int v = 0; v < vectors; ++v) in[v] = hn::LoadU(d, inputs + v * lanes);
    XRT_UNROLL
    for (int r = 0; r < rows; ++r) {
      const F32Vec weight = hn::Set(d, weights[r][k]);
      XRT_UNROLL
      for (int v = 0; v < vectors; ++v) sums[r][v] = hn::MulAdd(weight, in[v], sums[r][v]);
    }
  }
  XRT_UNROLL
  for (int r = 0; r < rows; ++r) {
    XRT_UNROLL
    for (int v = 0; v < vectors; ++v) {
      float* const to = p.sums + r * p.sums_row + v * lanes;
      if (!p.fresh) sums[r][v] = hn::Add(hn::LoadU(d, to), sums[r][v]);
      hn::StoreU(sums[r][v], d, to);
    }
  }
}

// With 32 registers 8 x 3 sums fit beside the operands, with 16 only 4 x 3.
constexpr int most_rows = HWY_TARGET == HWY_AVX3 || HWY_ARCH_ARM_A64 ? 8 : 4;
constexpr int most_vectors = 3;

template <int rows>
HWY_INLINE void add_rows(const Products& p, std::int64_t vectors) {
  if (vectors == 3) return add_products<rows, 3>(p);
  if (vectors == 2) return add_products<rows, 2>(p);
  add_products<rows, 1>(p);
}

/// For any number of rows and up to most_vectors vectors.
HWY_INLINE void add_all_products(Products p, std::int64_t rows, std::int64_t vectors) {
  const auto step = [&](std::int64_t done) {
    p.weights += done * p.weights_row;
    p.sums += done * p.sums_row;
    rows -= done;
  };
  for (; rows >= most_rows; step(most_rows)) add_rows<most_rows>(p, vectors);
  if (rows >= 4) add_rows<4>(p, vectors), step(4);
  if (rows >= 2) add_rows<2>(p, vectors), step(2);
  if (rows == 1) add_rows<1>(p, vectors);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
