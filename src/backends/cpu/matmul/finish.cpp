#include "backends/cpu/matmul/finish.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/finish.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/simd.h"
//
#include "backends/cpu/math.h"
HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

template <class T>
HWY_INLINE void finish_row(T* out, std::int64_t columns, const float* bias, Activation activation) {
  const auto lanes = static_cast<std::int64_t>(f32_lanes());
  std::int64_t j = 0;
  const auto value = [&](F32Vec x, F32Vec b) { return apply_activation(hn::Add(x, b), activation); };
  for (; j + lanes <= columns; j += lanes) {
    store(value(load(out + j), bias == nullptr ? constant(0) : load(bias + j)), out + j);
  }
  if (j == columns) return;
  const auto rest = static_cast<std::size_t>(columns - j);
  const F32Vec b = bias == nullptr ? constant(0) : load_first(bias + j, rest);
  store_first(value(load_first(out + j, rest), b), out + j, rest);
}

template <class T>
void finish_all(T* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                Activation activation) {
  for (std::int64_t i = 0; i < rows; ++i) finish_row(out + i * out_row, columns, bias, activation);
}

void finish_float(float* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                  Activation activation) {
  finish_all(out, out_row, rows, columns, bias, activation);
}

void finish_bfloat(Bfloat* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                   Activation activation) {
  finish_all(out, out_row, rows, columns, bias, activation);
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(finish_float);
HWY_EXPORT(finish_bfloat);

void finish_rows(float* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation) {
  HWY_DYNAMIC_DISPATCH(finish_float)(out, out_row, rows, columns, bias, activation);
}

void finish_rows(Bfloat* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation) {
  HWY_DYNAMIC_DISPATCH(finish_bfloat)(out, out_row, rows, columns, bias, activation);
}

}  // namespace xpuruntime::cpu
#endif
