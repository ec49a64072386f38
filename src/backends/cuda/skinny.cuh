#pragma once

#include "backends/cuda/launch.cuh"
#include "backends/cuda/numeric.cuh"

namespace xpuruntime::cuda {

// Loads come in batches, all issued before the first is used. In a whole batch none is conditional, so that nothing
// keeps the compiler from doing so; only the last batch of a walk is checked load by load.

/// 16 bytes of b, which no other block reads: past L1, so that a stays there.
__device__ inline uint4 load_once(const void* address) {
  uint4 v;
  asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
      : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
      : "l"(address));
  return v;
}

__device__ inline uint4 load_shared_by_blocks(const void* address) { return __ldg(static_cast<const uint4*>(address)); }

/// What one load brings: 16 bytes of elements, or one.
template <class T, bool vector>
inline constexpr int width = vector ? 16 / static_cast<int>(sizeof(T)) : 1;

__device__ inline void unpack(uint4 v, float (&out)[4]) {
  out[0] = __uint_as_float(v.x);
  out[1] = __uint_as_float(v.y);
  out[2] = __uint_as_float(v.z);
  out[3] = __uint_as_float(v.w);
}

__device__ inline void unpack_pair(const f16*, unsigned bits, float& low, float& high) {
  low = __half2float(__ushort_as_half(static_cast<unsigned short>(bits & 0xffff)));
  high = __half2float(__ushort_as_half(static_cast<unsigned short>(bits >> 16)));
}

__device__ inline void unpack_pair(const bf16*, unsigned bits, float& low, float& high) {
  low = __uint_as_float(bits << 16);
  high = __uint_as_float(bits & 0xffff0000u);
}

template <class T>
__device__ inline void unpack_as(uint4 v, float (&out)[8]) {
  const T* type = nullptr;
  unpack_pair(type, v.x, out[0], out[1]);
  unpack_pair(type, v.y, out[2], out[3]);
  unpack_pair(type, v.z, out[4], out[5]);
  unpack_pair(type, v.w, out[6], out[7]);
}

/// A chunk of b or a in flight, and its elements as floats once it is here.
template <class T, bool vector>
struct Chunk;

template <class T>
struct Chunk<T, false> {
  T value;
  __device__ void load_once(const T* address) { value = *address; }
  __device__ void load_again(const T* address) { value = *address; }
  __device__ void get(float (&out)[1]) const { out[0] = to_float(value); }
};

template <class T>
struct Chunk<T, true> {
  uint4 value;
  __device__ void load_once(const T* address) { value = cuda::load_once(address); }
  __device__ void load_again(const T* address) { value = load_shared_by_blocks(address); }
  __device__ void get(float (&out)[width<T, true>]) const {
    if constexpr (sizeof(T) == 4) {
      unpack(value, out);
    } else {
      unpack_as<T>(value, out);
    }
  }
};

cudaError_t launch_tensor_cores(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_dots(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);
cudaError_t launch_columns(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

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
  switch (launch.dtype) {
    case DataType::float16:
      return with_rows<f16>(launch.rows, use);
    case DataType::bfloat16:
      return with_rows<bf16>(launch.rows, use);
    default:
      return with_rows<float>(launch.rows, use);
  }
}

}  // namespace xpuruntime::cuda
