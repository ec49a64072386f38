#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unscale_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/plan.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

/// Returns whether a product is not finite. A gradient that is not finite has no finite product with anything, so the
/// products alone tell. Zero times a finite number is zero, and NaN otherwise, which stays in a sum.
template <class T>
bool unscale_row(const T* in, float inverse, float* out, std::size_t n) {
  const F32Vec factor = hn::Set(F32(), inverse), zero = hn::Zero(F32());
  F32Vec spoiled = zero;
  for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR {
    const F32Vec product = hn::Mul(load(in + i), factor);
    store(product, out + i);
    spoiled = hn::MulAdd(product, zero, spoiled);
  });
  return !hn::AllFalse(F32(), hn::IsNaN(spoiled));
}

}  // namespace

bool unscale_block(const Block& block, float inverse) {
  HWY_ALIGN float in[chunk_size], out[chunk_size];
  bool found = false;
  if (block.a.column == 1 && block.out.column == 1) {
    for (std::int64_t i = 0; i < block.rows; ++i) {
      with_storage(block.a.dtype, [&](auto type) {
        found |= unscale_row(static_cast<const decltype(type)*>(row_of(block.a, i).data), inverse,
                             static_cast<float*>(row_of(block.out, i).data), block.columns);
      });
    }
    return found;
  }
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    found |= unscale_row(widened(row_of(block.a, i, j), n, in), inverse, out, n);
    narrowed(out, row_of(block.out, i, j), n);
  });
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(unscale_block);

bool unscale_of_block(const Block& block, float inverse) { return HWY_DYNAMIC_DISPATCH(unscale_block)(block, inverse); }

}  // namespace xpuruntime::cpu
#endif
