#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/vectors.cuh"

namespace xpuruntime::cuda {

// Loads come in batches, all issued before the first is used. In a whole batch none is conditional, so that nothing
// keeps the compiler from doing so; only the last batch of a walk is checked load by load.

struct ProductPointers {
  const void* a;
  const void* b;
  const void* addend;
  void* output;
};
static_assert(sizeof(SkinnyLaunch) + sizeof(ProductPointers) <= 192);

cudaError_t launch_tiles(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream);
cudaError_t launch_held(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream);
cudaError_t launch_lanes(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream);
cudaError_t launch_dots(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream);
cudaError_t launch_columns(const SkinnyLaunch& launch, const ProductPointers& pointers, cudaStream_t stream);

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

/// An output of a sum.
__device__ inline float finished(const SkinnyLaunch& p, const ProductPointers& x, int row, int column, float sum) {
  float value = p.alpha * sum;
  if (p.beta != 0) {
    const PlaneStrides& steps = p.addend_strides;
    value = fmaf(p.beta, load_float(x.addend, p.addend, row * steps.row + column * steps.column), value);
  }
  return activate(p.activation, value);
}

__device__ inline void finish(const SkinnyLaunch& p, const ProductPointers& x, int row, int column, float sum) {
  store_float(x.output, p.output, row * p.c.row + column * p.c.column, finished(p, x, row, column, sum));
}

/// The same for four neighbouring columns, of which `count` exist. What few products need is computed in one place:
/// code that has not run yet takes long to come.
__device__ inline void finish_four(const SkinnyLaunch& p, const ProductPointers& x, int row, int column, int count,
                                   float4 sum) {
  if (p.beta != 0 || p.activation != Activation::none) {
#pragma unroll 1
    for (int i = 0; i < 4; ++i) {
      sum = {sum.y, sum.z, sum.w, i < count ? finished(p, x, row, column + i, sum.x) : 0};
    }
  } else {
    sum = {p.alpha * sum.x, p.alpha * sum.y, p.alpha * sum.z, p.alpha * sum.w};
  }
  const std::int64_t at = row * p.c.row + column * p.c.column;
  auto* const pairs = reinterpret_cast<uint2*>(static_cast<unsigned short*>(x.output) + at);
  const bool whole = count >= 4 && p.c.column == 1 && reinterpret_cast<std::uintptr_t>(pairs) % 8 == 0;
  if (whole && p.output == DataType::bfloat16) {
    *pairs = {pack_pair(bf16{}, sum.x, sum.y), pack_pair(bf16{}, sum.z, sum.w)};
  } else if (whole && p.output == DataType::float16) {
    *pairs = {pack_pair(f16{}, sum.x, sum.y), pack_pair(f16{}, sum.z, sum.w)};
  } else {
#pragma unroll 1
    for (int i = 0; i < count && i < 4; ++i) {
      store_float(x.output, p.output, at + i * p.c.column, sum.x);
      sum = {sum.y, sum.z, sum.w, 0};
    }
  }
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
