// A function of two vectors over blocks: Function::of(a, b). Has Highway's toggling guard.
#if defined(XRT_CPU_ELEMENTWISE_COMBINE_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_ELEMENTWISE_COMBINE_H_
#undef XRT_CPU_ELEMENTWISE_COMBINE_H_
#else
#define XRT_CPU_ELEMENTWISE_COMBINE_H_
#endif

#include "backends/cpu/elementwise/chunk.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// Steps are 1, or 0 where one element stands for the row.
template <class Function, class T>
void combine_row(const T* a, std::int64_t a_step, const T* b, std::int64_t b_step, T* out, std::int64_t n) {
  if (b_step == 0) {
    const F32Vec right = splat(b);
    if (a_step == 0) {
      const F32Vec both = Function::of(splat(a), right);
      return for_vectors(n, [&](std::size_t i, auto, auto store) HWY_ATTR { store(both, out + i); });
    }
    return for_vectors(
        n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(Function::of(load(a + i), right), out + i); });
  }
  if (a_step == 0) {
    const F32Vec left = splat(a);
    return for_vectors(
        n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(Function::of(left, load(b + i)), out + i); });
  }
  for_vectors(n, [&](std::size_t i, auto load, auto store)
                     HWY_ATTR { store(Function::of(load(a + i), load(b + i)), out + i); });
}

template <class Function>
void combine_chunks(const Block& block) {
  HWY_ALIGN float a[chunk_size], b[chunk_size], out[chunk_size];
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    const float* left = widened(row_of(block.a, i, j), n, a);
    const float* right = widened(row_of(block.b, i, j), n, b);
    combine_row<Function>(left, 1, right, 1, out, n);
    narrowed(out, row_of(block.out, i, j), n);
  });
}

template <class Function>
void combine_block(const Block& block) {
  const DataType dtype = block.out.dtype;
  if (block.a.dtype != dtype || block.b.dtype != dtype || block.out.column != 1 || !in_line_or_one(block.a) ||
      !in_line_or_one(block.b)) {
    return combine_chunks<Function>(block);
  }
  with_storage(dtype, [&](auto type) {
    using T = decltype(type);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      combine_row<Function>(static_cast<const T*>(block.a.data) + i * block.a.row, block.a.column,
                            static_cast<const T*>(block.b.data) + i * block.b.row, block.b.column,
                            static_cast<T*>(block.out.data) + i * block.out.row, block.columns);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
