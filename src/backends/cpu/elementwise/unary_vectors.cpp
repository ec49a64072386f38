#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/unary_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/math.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/map.h"
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
