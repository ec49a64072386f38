#include "backends/cpu/conv/operands.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/conv/floats_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

template <class T>
void widen_all(const void* memory, std::int64_t count, float* to) {
  const T* from = static_cast<const T*>(memory);
  for_vectors(static_cast<std::size_t>(count),
              [&](std::size_t i, const auto& get, const auto& put) HWY_ATTR { put(get(from + i), to + i); });
}

void widen_f32(const void* from, std::int64_t count, float* to) { widen_all<float>(from, count, to); }
void widen_f16(const void* from, std::int64_t count, float* to) { widen_all<Half>(from, count, to); }
void widen_bf16(const void* from, std::int64_t count, float* to) { widen_all<Bfloat>(from, count, to); }

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(widen_f32);
HWY_EXPORT(widen_f16);
HWY_EXPORT(widen_bf16);

void widen_floats(DataType dtype, const void* from, std::int64_t count, float* to) {
  if (dtype == DataType::float16) return HWY_DYNAMIC_DISPATCH(widen_f16)(from, count, to);
  if (dtype == DataType::bfloat16) return HWY_DYNAMIC_DISPATCH(widen_bf16)(from, count, to);
  HWY_DYNAMIC_DISPATCH(widen_f32)(from, count, to);
}

}  // namespace xpuruntime::cpu
#endif
