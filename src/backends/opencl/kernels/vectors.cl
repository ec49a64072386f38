// Comes before the sources that work on vectors of WIDTH floats and walk nests of dims. With ALIGNED, every vector
// starts at a multiple of 16 bytes; else elements are aligned and no more.
// Comparisons stand where isnan, fmax and select might: CPUs' compilers make vector code of them.

#if WIDTH == 1
typedef float Vec;
typedef int IntVec;
typedef uint UintVec;
#define AS_INTS as_int
#define AS_UINTS as_uint
#define AS_FLOATS as_float
#define SUM_OF(v) (v)
#define HIGHEST_OF(v) (v)
#define FIRST_OF(v) (v)
#else
#define FIRST_OF(v) ((v).s0)
typedef JOIN(float, WIDTH) Vec;
typedef JOIN(int, WIDTH) IntVec;
typedef JOIN(uint, WIDTH) UintVec;
#define AS_INTS JOIN(as_int, WIDTH)
#define AS_UINTS JOIN(as_uint, WIDTH)
#define AS_FLOATS JOIN(as_float, WIDTH)
float sum_of_2(float2 v) { return v.lo + v.hi; }
float sum_of_4(float4 v) { return sum_of_2(v.lo + v.hi); }
float sum_of_8(float8 v) { return sum_of_4(v.lo + v.hi); }
float sum_of_16(float16 v) { return sum_of_8(v.lo + v.hi); }
float highest_of_2(float2 v) { return v.hi > v.lo ? v.hi : v.lo; }
float highest_of_4(float4 v) { return highest_of_2(v.hi > v.lo ? v.hi : v.lo); }
float highest_of_8(float8 v) { return highest_of_4(v.hi > v.lo ? v.hi : v.lo); }
float highest_of_16(float16 v) { return highest_of_8(v.hi > v.lo ? v.hi : v.lo); }
#define SUM_OF JOIN(sum_of_, WIDTH)
#define HIGHEST_OF JOIN(highest_of_, WIDTH)
#endif

UintVec bf16_bits(Vec value) {
  const UintVec bits = AS_UINTS(value);
  const UintVec rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  return value != value ? (bits >> 16) | 0x40u : rounded;
}

#if WIDTH == 1
#define loads_f32 load_f32
#define loads_f16 load_f16
#define loads_bf16 load_bf16
#define stores_f32 store_f32
#define stores_f16 store_f16
#define stores_bf16 store_bf16
#else
#define NEIGHBOURS(type)                                                                                        \
  Vec loads_##type(__global const STORAGE(type) * data, ulong i) { return LOAD_WIDE(WIDTH, type)(data, i); }    \
  void stores_##type(__global STORAGE(type) * data, ulong i, Vec value) { STORE_WIDE(WIDTH, type)(data, i, value); }
#if defined(ALIGNED) && WIDTH == 8  // to 16 bytes
Vec loads_f32(__global const float* data, ulong i) {
  __global const float4* from = (__global const float4*)(data + i);
  return (float8)(from[0], from[1]);
}
void stores_f32(__global float* data, ulong i, Vec value) {
  __global float4* to = (__global float4*)(data + i);
  to[0] = value.lo;
  to[1] = value.hi;
}
#else
NEIGHBOURS(f32)
#endif
NEIGHBOURS(f16)
NEIGHBOURS(bf16)
#endif
// exp of what is not above 0, where less than the smallest normal float may be 0. NaN stays.
#ifdef CPU_DEVICE
#if WIDTH == 1
#define ROOT_OF_EXP root_of_exp
#else
#define ROOT_OF_EXP JOIN(root_of_exp, WIDTH)
#endif
Vec exp_below(Vec x) {
#ifdef __aarch64__  // where results below the normal floats cost nothing
  const Vec root = ROOT_OF_EXP(AT_LEAST(x, (Vec)(-104.0f)));
  return root * root;
#else
  const Vec root = ROOT_OF_EXP(AT_LEAST(x, (Vec)(-87.0f))), result = root * root;
  return x < -87.0f ? (Vec)(0.0f) : result;
#endif
}
#elif defined(NARROW)
#define exp_below native_exp
#else
#define exp_below exp
#endif
// A vector as an array in private memory; not by vload and vstore, which are calls on CPUs.
#define PRIVATE_VECTOR(type, name) type name[WIDTH] __attribute__((aligned(64)))
#define LOADS(type) JOIN(loads_, type)
#define STORES(type) JOIN(stores_, type)

// Of tensors that may be left out (type_none).
float load_as(__global const void* data, int type, ulong i, float otherwise) {
  if (type == type_f32) return load_f32((__global const float*)data, i);
  if (type == type_f16) return load_f16((__global const half*)data, i);
  if (type == type_bf16) return load_bf16((__global const ushort*)data, i);
  return otherwise;
}
void store_as(__global void* data, int type, ulong i, float value) {
  if (type == type_f32) store_f32((__global float*)data, i, value);
  if (type == type_f16) store_f16((__global half*)data, i, value);
  if (type == type_bf16) store_bf16((__global ushort*)data, i, value);
}
Vec loads_as(__global const void* data, int type, ulong i, float otherwise) {
  if (type == type_f32) return LOADS(f32)((__global const float*)data, i);
  if (type == type_f16) return LOADS(f16)((__global const half*)data, i);
  if (type == type_bf16) return LOADS(bf16)((__global const ushort*)data, i);
  return otherwise;
}
void stores_as(__global void* data, int type, ulong i, Vec value) {
  if (type == type_f32) STORES(f32)((__global float*)data, i, value);
  if (type == type_f16) STORES(f16)((__global half*)data, i, value);
  if (type == type_bf16) STORES(bf16)((__global ushort*)data, i, value);
}

// What is left of a value that is stored.
Vec rounded_as(int type, Vec value) {
  if (type == type_bf16) return AS_FLOATS(bf16_bits(value) << 16);
  if (type != type_f16) return value;
  ushort bits[WIDTH];
#if WIDTH == 1
  vstore_half_rte(value, 0, (half*)bits);
  return vload_half(0, (const half*)bits);
#else
  JOIN(JOIN(vstore_half, WIDTH), _rte)(value, 0, (half*)bits);
  return JOIN(vload_half, WIDTH)(0, (const half*)bits);
#endif
}

// Of a NaN in b nothing is seen.
#define HIGHER(a, b) ((b) > (a) ? (b) : (a))

// Floats as integers of the same order: +0 above -0, and every NaN above all numbers.
IntVec order_of(Vec value) {
  const IntVec bits = AS_INTS(value);
  return value != value ? (IntVec)(0x7fffffff) : bits ^ ((bits >> 31) & 0x7fffffff);
}
int order_of_one(float value) {
  const int bits = as_int(value);
  return isnan(value) ? 0x7fffffff : bits ^ ((bits >> 31) & 0x7fffffff);
}
Vec values_of_order(IntVec order) { return AS_FLOATS(order ^ ((order >> 31) & 0x7fffffff)); }
float value_of_order(int order) { return as_float(order ^ ((order >> 31) & 0x7fffffff)); }
#define LOWEST_ORDER ((int)0x807fffff) /* of minus infinity */

// Where the elements of up to five tensors lie, over one set of extents, the innermost first. The host has the same
// struct (nest.h). DIMS is at least the rank: arrays of arguments are looked up at places that compilers know.
typedef struct {
  long rank;
  long count;
  long extent[8];
  long stride[5][8];
} Nest;

typedef struct {
  ulong at[5];
} Places;

Places places_of(Nest nest, long i) {
  Places places = {{0, 0, 0, 0, 0}};
#pragma unroll
  for (int d = 0; d < DIMS; ++d) {
    const long rest = d + 1 < nest.rank ? i / nest.extent[d] : 0;
    const long here = i - rest * nest.extent[d];
#pragma unroll
    for (int t = 0; t < 5; ++t) places.at[t] += (ulong)(here * nest.stride[t][d]);
    i = rest;
  }
  return places;
}

// Teams: the `lanes` items of a work-group, a power of two, that share a task; one item where ALONE is set.
#ifdef ALONE
#define TEAM_PARAM(type)
#define TEAM
#define lanes 1
#define TEAM_FOLD(name, type, FOLD) \
  type name(type value) { return value; }
#define TEAM_FOLD_FLOATS(name, FOLD) TEAM_FOLD(name, float, FOLD)
#define TEAM_PLACE(task)                    \
  const long task = (long)get_global_id(0); \
  const int lane = 0;
#else
#define TEAM_PARAM(type) , int lanes, __local type *shared
#define TEAM , lanes, shared
#ifdef __NV_CL_C_VERSION  // whose OpenCL has no function by which 32 neighbours pass registers on, but takes PTX
float of_lane_across(float value, int step) {
  float other;
  __asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, 0xffffffff;" : "=f"(other) : "f"(value), "r"(step));
  return other;
}
#define IN_WARP(FOLD)                                    \
  if (lanes <= 32) {                                     \
    for (int step = lanes / 2; step > 0; step /= 2) {    \
      const float other = of_lane_across(value, step);   \
      value = FOLD(value, other);                        \
    }                                                    \
    return value;                                        \
  }
#else
#define IN_WARP(FOLD)
#endif
// Of floats, one a lane.
#define TEAM_FOLD_FLOATS(name, FOLD) TEAM_FOLD_AFTER(IN_WARP(FOLD), name, float, FOLD)
#define TEAM_FOLD(name, type, FOLD) TEAM_FOLD_AFTER(, name, type, FOLD)
// Two steps, so that each item reads few values. `shared` has two for each item of the group.
#define TEAM_FOLD_AFTER(BEFORE, name, type, FOLD)                                 \
  type name(type value, int lanes, __local type* shared) {                        \
    BEFORE                                                                        \
    const int item = (int)get_local_id(0);                                        \
    const int lane = item & (lanes - 1);                                          \
    const int few = min(lanes, 16);                                               \
    __local type* team = shared + (item - lane);                                  \
    __local type* partial = shared + (int)get_local_size(0) + item / lanes * few; \
    shared[item] = value;                                                         \
    barrier(CLK_LOCAL_MEM_FENCE);                                                 \
    if (lane < few) {                                                             \
      for (int i = lane + few; i < lanes; i += few) value = FOLD(value, team[i]); \
      partial[lane] = value;                                                      \
    }                                                                             \
    barrier(CLK_LOCAL_MEM_FENCE);                                                 \
    value = partial[0];                                                           \
    for (int i = 1; i < few; ++i) value = FOLD(value, partial[i]);                \
    return value;                                                                 \
  }
#define TEAM_PLACE(task)                               \
  const int lane = (int)get_local_id(0) & (lanes - 1); \
  const long task = (long)get_group_id(0) * ((int)get_local_size(0) / lanes) + (int)get_local_id(0) / lanes;
#endif
