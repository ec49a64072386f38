// Comes before every other source. Narrow types are storage only: all arithmetic is in float.

#define storage_f32 float
#define storage_f16 half
#define storage_bf16 ushort
#define storage_i64 long
#define storage_i32 int

float load_f32(__global const float* data, ulong i) { return data[i]; }
float load_f16(__global const half* data, ulong i) { return vload_half(i, data); }
float load_bf16(__global const ushort* data, ulong i) { return as_float((uint)data[i] << 16); }
long load_i64(__global const long* data, ulong i) { return data[i]; }
long load_i32(__global const int* data, ulong i) { return data[i]; }

void store_f32(__global float* data, ulong i, float value) { data[i] = value; }
void store_f16(__global half* data, ulong i, float value) { vstore_half_rte(value, i, data); }
ushort bf16_of(float value) {
  const uint bits = as_uint(value);
  // Half a step of the kept part, a little less where that part is even: ties go to even.
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN into infinity.
  const uint quiet_nan = (bits >> 16) | 0x40u;
  return (ushort)(isnan(value) ? quiet_nan : rounded);
}
void store_bf16(__global ushort* data, ulong i, float value) { data[i] = bf16_of(value); }

// The build options name the types: -D A_TYPE=f16.
#define JOIN_NOW(a, b) a##b
#define JOIN(a, b) JOIN_NOW(a, b)
#define STORAGE(type) JOIN(storage_, type)
#define LOAD(type) JOIN(load_, type)
#define STORE(type) JOIN(store_, type)

// 4, 8 or 16 neighbours at once: LOAD_WIDE(16, A_TYPE)(a, first). They begin at any element, or with -D ALIGNED at a
// multiple of their size. Plain loads of vectors with a smaller alignment, since PoCL builds its vload of elements.
#define LOAD_WIDE(n, type) JOIN(JOIN(load, n), JOIN(_, type))
#define STORE_WIDE(n, type) JOIN(JOIN(store, n), JOIN(_, type))
#ifdef ALIGNED
#define ELEMENT_ALIGNMENT(bytes)
#define HALF(call) call##a_half
#else
#define ELEMENT_ALIGNMENT(bytes) __attribute__((aligned(bytes)))
#define HALF(call) call##_half
#endif

#ifdef CPU_DEVICE
// Functions on halves are calls for each element there; on CPUs, where denormals count, integers do it in vectors.
#define WIDE_HALVES(n)                                                                                         \
  float##n load##n##_f16(__global const half* data, ulong i) {                                                 \
    const uint##n bits = convert_uint##n(*(__global const near_ushort##n*)((__global const ushort*)data + i)); \
    const uint##n size = (bits & 0x7fffu) << 13;                                                               \
    const uint##n scaled = as_uint##n(as_float##n(size) * 0x1p112f);                                           \
    const uint##n special = size >= 0x0f800000u ? (uint##n)0x7f800000u : (uint##n)0;                           \
    return as_float##n(scaled | special | ((bits & 0x8000u) << 16));                                           \
  }                                                                                                            \
  void store##n##_f16(__global half* data, ulong i, float##n value) {                                          \
    const uint##n bits = as_uint##n(value), size = bits & 0x7fffffffu;                                         \
    const uint##n normal = (size + 0xc8000fffu + ((size >> 13) & 1u)) >> 13;                                   \
    const uint##n denormal = as_uint##n(as_float##n(size) + 0.5f) - 0x3f000000u;                               \
    const uint##n special = size > 0x7f800000u ? (uint##n)0x7e00u : (uint##n)0x7c00u;                          \
    const uint##n finite = size < 0x38800000u ? denormal : normal;                                             \
    const uint##n result = (size >= 0x47800000u ? special : finite) | ((bits >> 16) & 0x8000u);                \
    *(__global near_ushort##n*)((__global ushort*)data + i) = convert_ushort##n(result);                       \
  }
#else
#define WIDE_HALVES(n)                                                                                         \
  float##n load##n##_f16(__global const half* data, ulong i) { return JOIN(HALF(vload), n)(0, data + i); }     \
  void store##n##_f16(__global half* data, ulong i, float##n value) {                                          \
    JOIN(JOIN(HALF(vstore), n), _rte)(value, 0, data + i);                                                     \
  }
#endif

#define WIDE(n)                                                                                                \
  typedef float##n near_float##n ELEMENT_ALIGNMENT(4);                                                         \
  typedef ushort##n near_ushort##n ELEMENT_ALIGNMENT(2);                                                       \
  float##n load##n##_f32(__global const float* data, ulong i) {                                                \
    return *(__global const near_float##n*)(data + i);                                                         \
  }                                                                                                            \
  void store##n##_f32(__global float* data, ulong i, float##n value) {                                         \
    *(__global near_float##n*)(data + i) = value;                                                              \
  }                                                                                                            \
  float##n load##n##_bf16(__global const ushort* data, ulong i) {                                              \
    return as_float##n(convert_uint##n(*(__global const near_ushort##n*)(data + i)) << 16);                    \
  }                                                                                                            \
  void store##n##_bf16(__global ushort* data, ulong i, float##n value) {                                       \
    const uint##n bits = as_uint##n(value);                                                                    \
    const uint##n rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;                                      \
    const uint##n result = (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;                \
    *(__global near_ushort##n*)(data + i) = convert_ushort##n(result);                                         \
  }                                                                                                            \
  WIDE_HALVES(n)
WIDE(4)
WIDE(8)
WIDE(16)

// Types as arguments, where one function serves them all: the numbers of DataType.
enum {
  type_f64,
  type_f32,
  type_tf32,
  type_f16,
  type_bf16,
  type_f8e4m3,
  type_f8e5m2,
  type_i64,
  type_i32,
  type_i16,
  type_i8,
  type_u8,
  type_bool
};

/// Of f32, f16 and bf16.
float load_float(__global const void* data, int type, ulong i) {
  if (type == type_f32) return load_f32((__global const float*)data, i);
  if (type == type_f16) return load_f16((__global const half*)data, i);
  return load_bf16((__global const ushort*)data, i);
}
void store_float(__global void* data, int type, ulong i, float value) {
  if (type == type_f32)
    store_f32((__global float*)data, i, value);
  else if (type == type_f16)
    store_f16((__global half*)data, i, value);
  else
    store_bf16((__global ushort*)data, i, value);
}

/// Of every integer type.
long load_integer(__global const void* data, int type, ulong i) {
  if (type == type_i64) return ((__global const long*)data)[i];
  if (type == type_i32) return ((__global const int*)data)[i];
  if (type == type_i16) return ((__global const short*)data)[i];
  if (type == type_i8) return ((__global const char*)data)[i];
  return ((__global const uchar*)data)[i];
}

#define WIDE_FLOATS(n)                                                                                         \
  float##n load_floats##n(__global const void* data, int type, ulong i) {                                      \
    if (type == type_f32) return load##n##_f32((__global const float*)data, i);                                \
    if (type == type_f16) return load##n##_f16((__global const half*)data, i);                                 \
    return load##n##_bf16((__global const ushort*)data, i);                                                    \
  }                                                                                                            \
  void store_floats##n(__global void* data, int type, ulong i, float##n value) {                               \
    if (type == type_f32)                                                                                      \
      store##n##_f32((__global float*)data, i, value);                                                         \
    else if (type == type_f16)                                                                                 \
      store##n##_f16((__global half*)data, i, value);                                                          \
    else                                                                                                       \
      store##n##_bf16((__global ushort*)data, i, value);                                                       \
  }
WIDE_FLOATS(4)
WIDE_FLOATS(8)
WIDE_FLOATS(16)

// Where the elements of three tensors lie. The host has the same struct (index.h). With -D RANK the number of extents
// in use is fixed.
typedef struct {
  long count;
  long rank;
  long extent[8];
  long a_stride[8];
  long b_stride[8];
  long c_stride[8];
} Index;
#ifdef RANK
#define RANK_OF(index) RANK
#else
#define RANK_OF(index) (index).rank
#endif

typedef struct {
  ulong a;
  ulong b;
  ulong c;
} Offsets;

// The host's Rows: `index` is of their first elements.
typedef struct {
  Index index;
  long length;
  long a_step;
  long b_step;
  long c_step;
} Rows;

// Unrolled, so that no array is indexed at run time: GPUs would move the struct to slow memory. In 32 bits where the
// count allows it: GPUs divide 64 bits slowly.
#define ADD_DIM(here)                                                                                          \
  at.a += (ulong)((long)(here) * index.a_stride[d]);                                                           \
  at.b += (ulong)((long)(here) * index.b_stride[d]);                                                           \
  at.c += (ulong)((long)(here) * index.c_stride[d]);

Offsets offsets_of(Index index, long i) {
  Offsets at = {0, 0, 0};
  if (index.count <= 0x7fffffff) {
    uint left = (uint)i;
#pragma unroll
    for (int d = 7; d > 0; --d)
      if (d < RANK_OF(index)) {
        const uint rest = left / (uint)index.extent[d];
        ADD_DIM(left - rest * (uint)index.extent[d])
        left = rest;
      }
    i = left;
  } else {
#pragma unroll
    for (int d = 7; d > 0; --d)
      if (d < RANK_OF(index)) {
        const long rest = i / index.extent[d];
        ADD_DIM(i - rest * index.extent[d])
        i = rest;
      }
  }
  const int d = 0;
  ADD_DIM(i)
  return at;
}
