#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unary_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/math.h"
#include "backends/cpu/elementwise/chunk.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Relu {
  static HWY_INLINE F32Vec of(F32Vec x) { return vrelu(x); }
};
struct Gelu {
  static HWY_INLINE F32Vec of(F32Vec x) { return vgelu(x); }
};
struct GeluTanh {
  static HWY_INLINE F32Vec of(F32Vec x) { return vgelu_tanh(x); }
};
struct Silu {
  static HWY_INLINE F32Vec of(F32Vec x) { return vsilu(x); }
};
struct Sigmoid {
  static HWY_INLINE F32Vec of(F32Vec x) { return vsigmoid(x); }
};
struct Tanh {
  static HWY_INLINE F32Vec of(F32Vec x) { return vtanh(x); }
};
struct Log {
  static HWY_INLINE F32Vec of(F32Vec x) { return vlog(x); }
};
struct Exp {
  static HWY_INLINE F32Vec of(F32Vec x) { return vexp(x); }
};
struct Sqrt {
  static HWY_INLINE F32Vec of(F32Vec x) { return hn::Sqrt(x); }
};

/// The step is 1, or 0 where one element stands for the row.
template <class Function, class T>
void map_row(const T* in, std::int64_t step, T* out, std::int64_t n) {
  if (step == 0) {
    const F32Vec value = Function::of(splat(in));
    return for_vectors(n, [&](std::size_t i, auto, auto store) HWY_ATTR { store(value, out + i); });
  }
  for_vectors(n, [&](std::size_t i, auto load, auto store) HWY_ATTR { store(Function::of(load(in + i)), out + i); });
}

template <class Function>
void map_chunks(const Block& block) {
  HWY_ALIGN float in[chunk_size], out[chunk_size];
  for_chunks(block, [&](std::int64_t i, std::int64_t j, std::int64_t n) {
    map_row<Function>(widened(row_of(block.a, i, j), n, in), 1, out, n);
    narrowed(out, row_of(block.out, i, j), n);
  });
}

template <class Function>
void map_block(const Block& block) {
  if (block.a.dtype != block.out.dtype || !in_line_or_one(block.a) || block.out.column != 1) {
    return map_chunks<Function>(block);
  }
  with_storage(block.out.dtype, [&](auto type) {
    using T = decltype(type);
    for (std::int64_t i = 0; i < block.rows; ++i) {
      map_row<Function>(static_cast<const T*>(block.a.data) + i * block.a.row, block.a.column,
                        static_cast<T*>(block.out.data) + i * block.out.row, block.columns);
    }
  });
}

}  // namespace

RunBlock find_unary(OpId op, bool by_tanh) {
  switch (op) {
    case OpId::relu:
      return map_block<Relu>;
    case OpId::gelu:
      return by_tanh ? map_block<GeluTanh> : map_block<Gelu>;
    case OpId::silu:
      return map_block<Silu>;
    case OpId::sigmoid:
      return map_block<Sigmoid>;
    case OpId::tanh:
      return map_block<Tanh>;
    case OpId::log:
      return map_block<Log>;
    case OpId::exp:
      return map_block<Exp>;
    default:
      return map_block<Sqrt>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_unary);

std::unique_ptr<const Plan> prepare_unary_simd(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_unary_backward_simd(problem);
  const bool by_tanh = problem.op == OpId::gelu && problem.attributes.choice("approximate") == "tanh";
  const bool light = problem.op == OpId::relu || problem.op == OpId::sqrt;
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_unary)(problem.op, by_tanh),
                         light ? light_grain : heavy_grain);
}

}  // namespace xpuruntime::cpu
#endif
