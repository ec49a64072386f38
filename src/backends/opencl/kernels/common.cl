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
#else
#define ELEMENT_ALIGNMENT(bytes) __attribute__((aligned(bytes)))
#endif

#if defined(CPU_DEVICE) && defined(__clang__) && defined(__aarch64__)
// Not of OpenCL, but of the one compiler that there is for these CPUs: they have instructions for it.
#define WIDE_HALVES(n)                                                                                         \
  typedef __fp16 halves##n __attribute__((vector_size(2 * n)));                                                \
  float##n load##n##_f16(__global const half* data, ulong i) {                                                 \
    const ushort##n bits = *(__global const near_ushort##n*)((__global const ushort*)data + i);                \
    return __builtin_convertvector(__builtin_astype(bits, halves##n), float##n);                               \
  }                                                                                                            \
  void store##n##_f16(__global half* data, ulong i, float##n value) {                                          \
    const halves##n bits = __builtin_convertvector(value, halves##n);                                          \
    *(__global near_ushort##n*)((__global ushort*)data + i) = __builtin_astype(bits, ushort##n);               \
  }
#elif defined(CPU_DEVICE)
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
#elif !defined(NVIDIA_PAIRS)
#define WIDE_HALVES(n)                                                                                         \
  float##n load##n##_f16(__global const half* data, ulong i) {                                                 \
    const ushort##n bits = *(__global const near_ushort##n*)((__global const ushort*)data + i);                \
    return vload_half##n(0, (const half*)&bits);                                                               \
  }                                                                                                            \
  void store##n##_f16(__global half* data, ulong i, float##n value) {                                          \
    ushort##n bits;                                                                                            \
    vstore_half##n##_rte(value, 0, (half*)&bits);                                                              \
    *(__global near_ushort##n*)((__global ushort*)data + i) = bits;                                            \
  }
#endif

#ifdef CPU_DEVICE
#define WIDE_BF16(n)                                                                                           \
  float##n load##n##_bf16(__global const ushort* data, ulong i) {                                              \
    return as_float##n(convert_uint##n(*(__global const near_ushort##n*)(data + i)) << 16);                    \
  }                                                                                                            \
  void store##n##_bf16(__global ushort* data, ulong i, float##n value) {                                       \
    const uint##n bits = as_uint##n(value);                                                                    \
    const uint##n rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;                                      \
    const uint##n result = (bits & 0x7fffffffu) > 0x7f800000u ? (bits >> 16) | 0x40u : rounded;                \
    *(__global near_ushort##n*)(data + i) = convert_ushort##n(result);                                         \
  }
#else
// GPUs need fewer instructions for two in a word of 32 bits.
#define PAIRS(type)                                                                                            \
  float4 type##_floats4(uint2 w) { return (float4)(type##_floats2(w.x), type##_floats2(w.y)); }                \
  float8 type##_floats8(uint4 w) { return (float8)(type##_floats4(w.lo), type##_floats4(w.hi)); }              \
  float16 type##_floats16(uint8 w) { return (float16)(type##_floats8(w.lo), type##_floats8(w.hi)); }           \
  uint2 type##_words4(float4 v) { return (uint2)(type##_words2(v.lo), type##_words2(v.hi)); }                  \
  uint4 type##_words8(float8 v) { return (uint4)(type##_words4(v.lo), type##_words4(v.hi)); }                  \
  uint8 type##_words16(float16 v) { return (uint8)(type##_words8(v.lo), type##_words8(v.hi)); }
#define WIDE_PAIRS(n, type, as_words)                                                                          \
  float##n load##n##_##type(__global const STORAGE(type) * data, ulong i) {                                    \
    return type##_floats##n(as_words(*(__global const near_ushort##n*)((__global const ushort*)data + i)));    \
  }                                                                                                            \
  void store##n##_##type(__global STORAGE(type) * data, ulong i, float##n value) {                             \
    *(__global near_ushort##n*)((__global ushort*)data + i) = as_ushort##n(type##_words##n(value));            \
  }
#define as_words4 as_uint2
#define as_words8 as_uint4
#define as_words16 as_uint8
#define WIDE_BF16(n) WIDE_PAIRS(n, bf16, as_words##n)

float2 bf16_floats2(uint word) { return (float2)(as_float(word << 16), as_float(word & 0xffff0000u)); }
#ifdef NVIDIA_PAIRS  // from Ampere on they have instructions for it
uint bf16_words2(float2 v) {
  uint word;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v.y), "f"(v.x));
  return word;
}
float2 f16_floats2(uint word) {
  float2 v;
  asm("{ .reg .b16 low, high; mov.b32 {low, high}, %2; cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"
      : "=f"(v.x), "=f"(v.y)
      : "r"(word));
  return v;
}
uint f16_words2(float2 v) {
  uint word;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(word) : "f"(v.y), "f"(v.x));
  return word;
}
PAIRS(f16)
#define WIDE_HALVES(n) WIDE_PAIRS(n, f16, as_words##n)
#else
uint bf16_words2(float2 v) { return (uint)bf16_of(v.x) | (uint)bf16_of(v.y) << 16; }
#endif
PAIRS(bf16)
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
  WIDE_BF16(n)                                                                                                 \
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
  type_bool,
  type_none  // no tensor
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

/// Keeps the low bits.
void store_integer(__global void* data, int type, ulong i, long value) {
  if (type == type_i64)
    ((__global long*)data)[i] = value;
  else if (type == type_i32)
    ((__global int*)data)[i] = (int)value;
  else if (type == type_i16)
    ((__global short*)data)[i] = (short)value;
  else
    ((__global uchar*)data)[i] = (uchar)(type == type_bool ? value != 0 : value);
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
  at.a += (ulong)((long)(here) * index->a_stride[d]);                                                           \
  at.b += (ulong)((long)(here) * index->b_stride[d]);                                                           \
  at.c += (ulong)((long)(here) * index->c_stride[d]);

Offsets offsets_at(const Index* index, long i) {
  Offsets at = {0, 0, 0};
  if (index->count == 1) return at;
  if (index->count <= 0x7fffffff) {
    uint left = (uint)i;
#pragma unroll
    for (int d = 7; d > 0; --d)
      if (d < RANK_OF(*index)) {
        const uint rest = left / (uint)index->extent[d];
        ADD_DIM(left - rest * (uint)index->extent[d])
        left = rest;
      }
    i = left;
  } else {
#pragma unroll
    for (int d = 7; d > 0; --d)
      if (d < RANK_OF(*index)) {
        const long rest = i / index->extent[d];
        ADD_DIM(i - rest * index->extent[d])
        i = rest;
      }
  }
  const int d = 0;
  ADD_DIM(i)
  return at;
}
Offsets offsets_of(Index index, long i) { return offsets_at(&index, i); }

// What a work-item has of rows that are cut into chunks of `size`, `chunks` a row.
typedef struct {
  long row;
  long first;  // element of the row
  long count;  // 0 or less: nothing to do
} Chunk;
Chunk chunk_of(long rows, long length, long size, long chunks) {
  const long item = (long)get_global_id(0);
  Chunk at = {item, 0, 0};
  if (rows == 1)
    at.row = 0;
  else if (chunks > 1)
    at.row = get_global_size(0) <= 0x7fffffff ? (long)((uint)item / (uint)chunks) : item / chunks;
  at.first = (item - at.row * chunks) * size;
  at.count = at.row < rows ? min(size, length - at.first) : 0;
  return at;
}

// Functions of floats over their whole range, alone (exp_of) or 4, 8 or 16 at once (exp_of16): within 4 ulp on every
// device, with infinities and NaN as from the C library.
#define AT_LEAST(x, low) ((x) < (low) ? (low) : (x)) /* NaN stays */
#define AT_MOST(x, high) ((x) > (high) ? (high) : (x))
#define BETWEEN(x, low, high) AT_MOST(AT_LEAST(x, low), high)
#if defined(CPU_DEVICE) && defined(__aarch64__)
// In two roundings: a fused addition would overwrite the constant there, and a copy of it costs more than the product.
#define LINE_OF(F, x, slope, first) \
  const F product = slope * x;      \
  return product + first;
#else
#define LINE_OF(F, x, slope, first) return slope * x + first;
#endif
// With -D NARROW all results are rounded to 16 bits, for which the device's own functions have digits enough.
#ifdef NARROW
#define QUOTIENT(x, y) native_divide(x, y)
#define EXP_BELOW(exact, x) native_exp(x)
#else
#define QUOTIENT(x, y) ((x) / (y))
#define EXP_BELOW(exact, x) exact(x)
#endif
#define NEAREST (0x1.8p23f + 126.0f) /* after this is added, the low bits are the nearest integer plus 126 */
#define FUNCTIONS(n, F, I, as_f, as_i, to_f)                                                                   \
  F line_of##n(F x, float slope, float first) { LINE_OF(F, x, slope, first) }                                  \
  F root_of_exp##n(F x) { /* of -104 to 89; its square is off by up to 7 ulp: for softmax */                   \
    const F scaled = x * 0x1.715476p-1f;                                                                       \
    const F shifted = scaled + NEAREST, whole = shifted - NEAREST;                                             \
    const F r = x - whole * 0x1.62e4p+0f - whole * 0x1.7f7d1cp-19f, s = r * r;                                 \
    F q = line_of##n(r, 0x1.105e8ap-11f, 0x1.57333p-8f) * s + line_of##n(r, 0x1.5557c8p-5f, 0x1.fffde8p-3f);   \
    q = q * s + (r + 2.0f);                                                                                    \
    return q * as_f(as_i(shifted) << 23);                                                                      \
  }                                                                                                            \
  F exp_of##n(F x) {                                                                                           \
    x = BETWEEN(x, (F)-104.0f, (F)89.0f);                                                                      \
    const F shifted = x * 0x1.715476p+0f + 0x1.8p23f; /* the nearest integer stands in its low bits */         \
    const F whole = shifted - 0x1.8p23f;                                                                       \
    const F r = x - whole * 0x1.62e4p-1f - whole * 0x1.7f7d1cp-20f;                                            \
    F q = 0x1.6a1a78p-10f * r + 0x1.123fc6p-7f;                                                                \
    q = ((q * r + 0x1.555916p-5f) * r + 0x1.55548ap-3f) * r + 0x1.fffffcp-2f;                                  \
    const I power = as_i(shifted) - 0x4b400000, part = power >> 1; /* in two steps: 2^power may be no float */ \
    return (1.0f + (r * r * q + r)) * as_f((part + 127) << 23) * as_f((power - part + 127) << 23);             \
  }                                                                                                            \
  F log_of##n(F x) {                                                                                           \
    const F normal = x < 0x1p-126f ? x * 0x1p23f : x;                                                          \
    const I bits = as_i(normal), exponent = (bits - 0x3f3504f3) >> 23;                                         \
    const F e = to_f(exponent) - (x < 0x1p-126f ? (F)23.0f : (F)0.0f);                                         \
    const F f = as_f(bits - (exponent << 23)) - 1.0f, square = f * f;                                          \
    F q = -0x1.043862p-5f * f + 0x1.49c358p-4f;                                                                \
    q = ((q * f + -0x1.b0f34cp-4f) * f + 0x1.d259eep-4f) * f + -0x1.ffdd74p-4f;                                \
    q = ((q * f + 0x1.243d64p-3f) * f + -0x1.555032p-3f) * f + 0x1.999b76p-3f;                                 \
    q = (q * f + -0x1.00000ep-2f) * f + 0x1.555554p-2f;                                                        \
    const F small = e * 0x1.7f7d1cp-20f + f * square * q;                                                      \
    F result = e * 0x1.62e4p-1f + (small - 0.5f * square + f);                                                 \
    result = x == INFINITY ? (F)INFINITY : result;                                                             \
    result = x == 0.0f ? (F)-INFINITY : result;                                                                \
    return x >= 0.0f ? result : (F)NAN;                                                                        \
  }                                                                                                            \
  F sigmoid_of##n(F x) { /* neither side overflows */                                                          \
    const F below = as_f(as_i(x) | (int)0x80000000); /* -fabs(x), which PoCL calls */                          \
    const F e = EXP_BELOW(exp_of##n, below);                                                                   \
    return QUOTIENT(x < 0.0f ? e : (F)1.0f, 1.0f + e);                                                         \
  }                                                                                                            \
  F tanh_of##n(F x) {                                                                                          \
    const F s = AT_MOST(x * x, (F)(9.02f * 9.02f)), t = s * s;                                                 \
    F p = -0x1.6781f2p-24f * t + line_of##n(s, -0x1.572e10p-16f, 0x1.10c718p-12f);                             \
    p = p * t + line_of##n(s, 0x1.34dcacp-4f, 0.875f);                                                         \
    F q = 0x1.a0b65cp-21f * t + line_of##n(s, 0x1.584104p-12f, 0x1.a7dee2p-6f);                                \
    q = q * t + line_of##n(s, 0x1.de5760p-2f, 1.0f);                                                           \
    const F result = x * (QUOTIENT(p, q) + 0.125f);                                                            \
    return BETWEEN(result, (F)-1.0f, (F)1.0f);                                                                 \
  }                                                                                                            \
  F phi_of##n(F x) { /* the share of a normal distribution below x; past 5.2 it is 0 or 1 */                   \
    const F s = AT_MOST(x * x, (F)(5.2f * 5.2f)), t = s * s;                                                   \
    F p = 0x1.87ddp-18f * t + line_of##n(s, 0x1.4971d4p-12f, 0x1.69a492p-8f);                                  \
    p = p * t + line_of##n(s, 0x1.963662p-5f, 0x1.98843ap-2f);                                                 \
    F q = line_of##n(s, 0x1.0d666p-21f, 0x1.d8bep-14f) * t + line_of##n(s, 0x1.62538ep-9f, 0x1.31da86p-5f);    \
    q = q * t + line_of##n(s, 0x1.29f046p-2f, 1.0f);                                                           \
    const F above = x * QUOTIENT(p, q), result = above + 0.5f;                                                 \
    return BETWEEN(result, (F)0.0f, (F)1.0f);                                                                  \
  }
FUNCTIONS(, float, int, as_float, as_int, convert_float)
FUNCTIONS(4, float4, int4, as_float4, as_int4, convert_float4)
FUNCTIONS(8, float8, int8, as_float8, as_int8, convert_float8)
FUNCTIONS(16, float16, int16, as_float16, as_int16, convert_float16)
