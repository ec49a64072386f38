#include "backends/cpu/matmul/finish.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/cpu/matmul/finish_vectors.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include "backends/cpu/base/simd.h"
//
#include "backends/cpu/base/math.h"
HWY_BEFORE_NAMESPACE();
namespace xpuruntime::cpu {
namespace HWY_NAMESPACE {

// The activation is part of the type: chosen per vector, it would keep the loop from holding its constants.
template <Activation activation, class T>
void finish_all(T* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias) {
  for (std::int64_t i = 0; i < rows; ++i) {
    T* const row = out + i * out_row;
    for_vectors(static_cast<std::size_t>(columns), [&](std::size_t j, auto load, auto store) HWY_ATTR {
      const F32Vec x = load(row + j);
      store(apply_activation(bias == nullptr ? x : hn::Add(x, load(bias + j)), activation), row + j);
    });
  }
}

template <class T>
void finish(T* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
            Activation activation) {
  switch (activation) {
    case Activation::relu:
      return finish_all<Activation::relu>(out, out_row, rows, columns, bias);
    case Activation::gelu:
      return finish_all<Activation::gelu>(out, out_row, rows, columns, bias);
    case Activation::silu:
      return finish_all<Activation::silu>(out, out_row, rows, columns, bias);
    case Activation::none:
      return finish_all<Activation::none>(out, out_row, rows, columns, bias);
  }
}

void finish_float(float* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                  Activation activation) {
  finish(out, out_row, rows, columns, bias, activation);
}

void finish_bfloat(Bfloat* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                   Activation activation) {
  finish(out, out_row, rows, columns, bias, activation);
}

void scale_row(const ScaledSums& row, void* out, DataType dtype) {
  const F32Vec beta = hn::Set(F32(), row.beta);
  with_storage(dtype, [&](auto type) HWY_ATTR {
    auto* const to = static_cast<decltype(type)*>(out);
    for_vectors(static_cast<std::size_t>(row.count), [&](std::size_t i, auto load, auto store) HWY_ATTR {
      const F32Vec scaled = hn::Mul(load(row.sums + i), load(row.factors + i));
      store(hn::MulAdd(beta, load(row.added + i), scaled), to + i);
    });
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::cpu {

HWY_EXPORT(finish_float);
HWY_EXPORT(finish_bfloat);
HWY_EXPORT(scale_row);

void finish_rows(float* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation) {
  HWY_DYNAMIC_DISPATCH(finish_float)(out, out_row, rows, columns, bias, activation);
}

void finish_rows(Bfloat* out, std::int64_t out_row, std::int64_t rows, std::int64_t columns, const float* bias,
                 Activation activation) {
  HWY_DYNAMIC_DISPATCH(finish_bfloat)(out, out_row, rows, columns, bias, activation);
}

void scale_and_add(const ScaledSums& row, void* out, DataType dtype) {
  HWY_DYNAMIC_DISPATCH(scale_row)(row, out, dtype);
}

}  // namespace xpuruntime::cpu
#endif
