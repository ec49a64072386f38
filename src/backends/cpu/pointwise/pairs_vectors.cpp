#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/pointwise/pairs_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <cmath>

#include "backends/cpu/base/extremes.h"
#include "backends/cpu/elementwise/combine.h"
#include "backends/cpu/elementwise/plan.h"
#include "backends/cpu/pointwise/kernels.h"
#include "xpuruntime/registry/refusals.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {
namespace {

struct Maximum {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return maximum(a, b); }
};
struct Minimum {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) { return minimum(a, b); }
};
struct PRelu {
  static HWY_INLINE F32Vec of(F32Vec x, F32Vec slope) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(F32())), hn::Mul(x, slope), x);
  }
};

float remainder_of(float a, float b) {
  const float left = ::fmodf(a, b);
  return left != 0 && (left < 0) != (b < 0) ? left + b : left;
}

/// By the C library, lane by lane.
template <float (*function)(float, float)>
struct EachPair {
  static HWY_INLINE F32Vec of(F32Vec a, F32Vec b) {
    HWY_ALIGN float left[hn::MaxLanes(F32())], right[hn::MaxLanes(F32())];
    hn::Store(a, F32(), left);
    hn::Store(b, F32(), right);
    for (std::size_t i = 0; i < f32_lanes(); ++i) left[i] = function(left[i], right[i]);
    return hn::Load(F32(), left);
  }
};

}  // namespace

RunBlock find_pair(OpId op) {
  switch (op) {
    case OpId::maximum:
      return combine_block<Maximum>;
    case OpId::minimum:
      return combine_block<Minimum>;
    case OpId::prelu:
      return combine_block<PRelu>;
    case OpId::pow:
      return combine_block<EachPair<::powf>>;
    case OpId::fmod:
      return combine_block<EachPair<::fmodf>>;
    default:
      return combine_block<EachPair<remainder_of>>;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(find_pair);

namespace {

RunBlock find_integers(const Problem& problem) {
  const DataType dtype = problem.outputs[0].dtype;
  for (const TensorSpec& spec : problem.inputs) {
    if (spec.dtype != dtype) return nullptr;
  }
  return find_binary_integers(problem.op, dtype);
}

}  // namespace

Verdict supports_pairs_simd(const Problem& problem, const DeviceProfile&) {
  return find_integers(problem) != nullptr ? Verdict::yes() : takes_dtypes(problem, fast_floats, fast_floats);
}

Verdict supports_integer_pairs(const Problem& problem, const DeviceProfile&) {
  if (find_integers(problem) != nullptr) return Verdict::yes();
  return has_one_dtype(problem);
}

std::unique_ptr<const Plan> prepare_pairs_simd(const Problem& problem, const PrepareContext&) {
  const RunBlock integers = find_integers(problem);
  return make_block_plan(problem, integers ? integers : HWY_DYNAMIC_DISPATCH(find_pair)(problem.op), light_grain);
}

std::unique_ptr<const Plan> prepare_pairs_library(const Problem& problem, const PrepareContext&) {
  constexpr std::int64_t grain = heavy_grain / 8;
  return make_block_plan(problem, HWY_DYNAMIC_DISPATCH(find_pair)(problem.op), grain);
}

}  // namespace xpuruntime::cpu
#endif
