#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/vectors.cuh"

namespace xpuruntime::cuda {

// Loads come in batches, all issued before the first is used. In a whole batch none is conditional, so that nothing
// keeps the compiler from doing so; only the last batch of a walk is checked load by load.

cudaError_t launch_tiles(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_held(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_lanes(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_dots(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_columns(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

__device__ inline float load_float(const void* data, DataType dtype, std::int64_t index) {
  if (dtype == DataType::float16) return to_float(static_cast<const f16*>(data)[index]);
  if (dtype == DataType::bfloat16) return to_float(static_cast<const bf16*>(data)[index]);
  return static_cast<const float*>(data)[index];
}

__device__ inline float activate(Activation activation, float x) {
  switch (activation) {
    case Activation::relu:
      return x <= 0 ? 0 : x;  // NaN stays
    case Activation::gelu:
      return 0.5f * x * (1 + erff(x * 0.70710678f));
    case Activation::silu:
      return x / (1 + expf(-x));
    default:
      return x;
  }
}

/// Makes an output of a sum.
__device__ inline void finish(const SkinnyLaunch& p, const Pointers& x, int row, int column, float sum) {
  float value = p.alpha * sum;
  if (p.beta != 0) {
    value = fmaf(p.beta, load_float(x.inputs[2], p.addend, row * p.addend_row + column * p.addend_column), value);
  }
  store_float(x.output, p.output, row * p.c.row + column * p.c.column, activate(p.activation, value));
}

/// Calls `use` with the element type and the number of rows as types, of which kernels are made.
template <int value>
struct Constant {
  static constexpr int get = value;
};

template <class T, class Use>
cudaError_t with_rows(int rows, Use&& use) {
  switch (rows) {
    case 1:
      return use(T{}, Constant<1>{});
    case 2:
      return use(T{}, Constant<2>{});
    case 4:
      return use(T{}, Constant<4>{});
    default:
      return use(T{}, Constant<8>{});
  }
}

template <class Use>
cudaError_t with_type_and_rows(const SkinnyLaunch& launch, Use&& use) {
  return with_type(launch.dtype, [&](auto element) { return with_rows<decltype(element)>(launch.rows, use); });
}

}  // namespace xpuruntime::cuda
