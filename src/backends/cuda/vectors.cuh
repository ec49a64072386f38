#pragma once

#include "backends/cuda/numeric.cuh"

// 16 bytes at a time, of float32, float16 or bfloat16, computed with as float32.

namespace xpuruntime::cuda {

template <class T>
inline constexpr int per_vector = 16 / static_cast<int>(sizeof(T));

/// 16 bytes that no other block reads. By a plain load: on an H200 hints that keep them out of caches cost bandwidth.
__device__ inline uint4 load_once(const void* address) { return *static_cast<const uint4*>(address); }

__device__ inline uint4 load_shared_by_blocks(const void* address) { return __ldg(static_cast<const uint4*>(address)); }

__device__ inline void unpack_pair(f16, unsigned bits, float& low, float& high) {
  low = __half2float(__ushort_as_half(static_cast<unsigned short>(bits & 0xffff)));
  high = __half2float(__ushort_as_half(static_cast<unsigned short>(bits >> 16)));
}
__device__ inline void unpack_pair(bf16, unsigned bits, float& low, float& high) {
  low = __uint_as_float(bits << 16);
  high = __uint_as_float(bits & 0xffff0000u);
}
__device__ inline unsigned pack_pair(f16, float low, float high) {
  const __half2 pair = __floats2half2_rn(low, high);
  return reinterpret_cast<const unsigned&>(pair);
}
__device__ inline unsigned pack_pair(bf16, float low, float high) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return reinterpret_cast<const unsigned&>(pair);
}

template <class T>
__device__ inline void unpack(uint4 v, float (&out)[per_vector<T>]) {
  if constexpr (sizeof(T) == 4) {
    out[0] = __uint_as_float(v.x);
    out[1] = __uint_as_float(v.y);
    out[2] = __uint_as_float(v.z);
    out[3] = __uint_as_float(v.w);
  } else {
    unpack_pair(T{}, v.x, out[0], out[1]);
    unpack_pair(T{}, v.y, out[2], out[3]);
    unpack_pair(T{}, v.z, out[4], out[5]);
    unpack_pair(T{}, v.w, out[6], out[7]);
  }
}

template <class T>
__device__ inline uint4 pack(const float (&in)[per_vector<T>]) {
  if constexpr (sizeof(T) == 4) {
    return {__float_as_uint(in[0]), __float_as_uint(in[1]), __float_as_uint(in[2]), __float_as_uint(in[3])};
  } else {
    return {pack_pair(T{}, in[0], in[1]), pack_pair(T{}, in[2], in[3]), pack_pair(T{}, in[4], in[5]),
            pack_pair(T{}, in[6], in[7])};
  }
}

/// Neighbours that begin on a multiple of 16 bytes, read by many blocks.
template <class T, int count>
__device__ inline void load_neighbours(const T* from, float (&out)[count]) {
#pragma unroll
  for (int i = 0; i < count / per_vector<T>; ++i) {
    float part[per_vector<T>];
    unpack<T>(load_shared_by_blocks(from + i * per_vector<T>), part);
#pragma unroll
    for (int j = 0; j < per_vector<T>; ++j) out[i * per_vector<T> + j] = part[j];
  }
}

__device__ inline bool is_aligned_to_16(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % 16 == 0;
}

/// What one load brings: 16 bytes of elements, or one.
template <class T, bool vector>
inline constexpr int width = vector ? per_vector<T> : 1;

/// A chunk in flight, and its elements as floats once it is here.
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
  __device__ void get(float (&out)[width<T, true>]) const { unpack<T>(value, out); }
};

/// Calls `use` with a value of the dtype's type, of which kernels are made.
template <class Use>
cudaError_t with_type(DataType dtype, Use&& use) {
  switch (dtype) {
    case DataType::float16:
      return use(f16{});
    case DataType::bfloat16:
      return use(bf16{});
    default:
      return use(float{});
  }
}

}  // namespace xpuruntime::cuda
