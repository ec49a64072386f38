// Comes before every other source. Narrow types are storage only: all arithmetic is in float.

#define storage_f32 float
#define storage_f16 half
#define storage_bf16 ushort

float load_f32(__global const float* data, ulong i) { return data[i]; }
float load_f16(__global const half* data, ulong i) { return vload_half(i, data); }
float load_bf16(__global const ushort* data, ulong i) { return as_float((uint)data[i] << 16); }

void store_f32(__global float* data, ulong i, float value) { data[i] = value; }
void store_f16(__global half* data, ulong i, float value) { vstore_half_rte(value, i, data); }
void store_bf16(__global ushort* data, ulong i, float value) {
  const uint bits = as_uint(value);
  // Half a step of the kept part, a little less where that part is even: ties go to even.
  const uint rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  // Rounding could carry a NaN into infinity.
  const uint quiet_nan = (bits >> 16) | 0x40u;
  data[i] = (ushort)(isnan(value) ? quiet_nan : rounded);
}

// The build options name the types: -D A_TYPE=f16.
#define JOIN_NOW(a, b) a##b
#define JOIN(a, b) JOIN_NOW(a, b)
#define STORAGE(type) JOIN(storage_, type)
#define LOAD(type) JOIN(load_, type)
#define STORE(type) JOIN(store_, type)

// Where the elements of three tensors lie. The host has the same struct (index.h). The number of extents in use is a
// build option, so that the loop below has no bounds to test and no arrays to index at run time.
#ifndef RANK
#define RANK 1
#endif
typedef struct {
  long count;
  long extent[8];
  long a_stride[8];
  long b_stride[8];
  long c_stride[8];
} Index;

typedef struct {
  ulong a;
  ulong b;
  ulong c;
} Offsets;

Offsets offsets_of(Index index, long i) {
  Offsets at = {0, 0, 0};
  for (int d = RANK - 1; d > 0; --d) {
    const long rest = i / index.extent[d];
    const long here = i - rest * index.extent[d];
    at.a += (ulong)(here * index.a_stride[d]);
    at.b += (ulong)(here * index.b_stride[d]);
    at.c += (ulong)(here * index.c_stride[d]);
    i = rest;
  }
  at.a += (ulong)(i * index.a_stride[0]);
  at.b += (ulong)(i * index.b_stride[0]);
  at.c += (ulong)(i * index.c_stride[0]);
  return at;
}
