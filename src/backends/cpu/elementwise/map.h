// A function of a vector over blocks: function.of(x), where the function may be made from the block's parameters. Has
// Highway's toggling guard.
#if defined(XRT_CPU_ELEMENTWISE_MAP_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef XRT_CPU_ELEMENTWISE_MAP_H_
#undef XRT_CPU_ELEMENTWISE_MAP_H_
#else
#define XRT_CPU_ELEMENTWISE_MAP_H_
#endif

#include "backends/cpu/elementwise/chunk.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

/// The step is 1, or 0 where one element stands for the row.
template <class Function, class T>
void map_row(const Function& function, const T* in, std::int64_t step, T* out, std::int64_t n) {
  if (step == 0) {
    const F32Vec value = function.of(splat(in));
    return for_vectors(n, [&](std::size_t i, auto, auto store) HWY_ATTR { store(value, out + i); });
  }
  for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(function.of(load(in + i)), out + i); });
}

template <class Function>
void map_chunks(const Function& function, const Block& block) {
  HWY_ALIGN float in[chunk_size], out[chunk_size];
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    map_row(function, widened(row_of(block.a, i, j), n, in), 1, out, n);
    narrowed(out, row_of(block.out, i, j), n);
  });
}

template <class Function>
Function made_for(const Block& block) {
  if constexpr (std::is_constructible_v<Function, FunctionParameters>) return Function(block.parameters);
  if constexpr (!std::is_constructible_v<Function, FunctionParameters>) return Function();
}

template <class Function>
void map_block(const Block& block) {
  const Function function = made_for<Function>(block);
  if (block.a.dtype != block.out.dtype || !in_line_or_one(block.a) || block.out.column != 1) {
    return map_chunks(function, block);
  }
  with_storage(block.out.dtype, [&](auto type) {
    using T = decltype(type);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      map_row(function, static_cast<const T*>(block.a.data) + i * block.a.row, block.a.column,
              static_cast<T*>(block.out.data) + i * block.out.row, block.columns);
    }
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#endif  // the toggling guard
