#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/elementwise/binary_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/elementwise/combine.h"
#include "backends/cpu/elementwise/kernels.h"
#include "backends/cpu/elementwise/plan.h"
#include "xpuruntime/registry/refusals.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Add {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return hn::Add(a, b); }
};
struct Sub {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return hn::Sub(a, b); }
};
struct Mul {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return hn::Mul(a, b); }
};
struct Div {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return hn::Div(a, b); }
};

}  // namespace

RunBlock find_binary_floats(OpId op) {
  switch (op) {
    case OpId::add:
      return combine_block<Add>;
    case OpId::sub:
      return combine_block<Sub>;
    case OpId::mul:
      return combine_block<Mul>;
    default:
      return combine_block<Div>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_binary_floats);

namespace {

bool all_of_dtype(const Problem& problem, DataType dtype) {
  return problem.inputs[0].dtype == dtype && problem.inputs[1].dtype == dtype && problem.outputs[0].dtype == dtype;
}

RunBlock find_integers(const Problem& problem) {
  const DataType dtype = problem.outputs[0].dtype;
  return all_of_dtype(problem, dtype) ? find_binary_integers(problem.op, dtype) : nullptr;
}

}  // namespace

Verdict supports_binary_simd(const Problem& problem, const DeviceProfile&) {
  return find_integers(problem) != nullptr ? Verdict::yes() : takes_dtypes(problem, fast_floats, fast_floats);
}

std::unique_ptr<const Plan> prepare_binary_simd(const Problem& problem, const PrepareContext&) {
  const RunBlock integers = find_integers(problem);
  return make_block_plan(problem, integers ? integers : HWY_DYNAMIC_DISPATCH(find_binary_floats)(problem.op),
                         light_grain);
}

}  // namespace xpuruntime::cpu
#endif
