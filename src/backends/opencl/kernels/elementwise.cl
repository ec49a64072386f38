// A kernel for each op, for any layout and any mix of f32, f16 and bf16. A work-item goes along a part of a row, WIDTH
// neighbours at a time.

#ifdef CPU_DEVICE
#define WIDTH 16
#define PART 256  // elements of a work-item: what each does once is little beside them
#else
#ifndef WIDTH
#define WIDTH 4
#endif
#define PART WIDTH
#endif
#define floatw JOIN(float, WIDTH)
#define intw JOIN(int, WIDTH)
#define OF(function) JOIN(function, WIDTH)

typedef struct {
  ulong a;
  ulong b;
  ulong c;
  long number;  // of the first element, row after row
  int count;    // 0: nothing to do
} Part;

Part part_of(const Rows* rows) {
#ifdef ROWS  // of one dim, few enough for 32 bits
  const uint item = (uint)get_global_id(0), vectors = (uint)(rows->length / WIDTH), row = item / vectors;
  const ulong first = (ulong)(item - row * vectors) * WIDTH;
  const Part near = {first + row * (ulong)rows->index.a_stride[0], first + row * (ulong)rows->index.b_stride[0],
                     first + row * (ulong)rows->index.c_stride[0], (long)(row * (ulong)rows->length + first),
                     row < rows->index.count ? WIDTH : 0};
  return near;
#elif defined(DENSE)
  const ulong first = get_global_id(0) * WIDTH;
  const Part whole = {first, first, first, (long)first, (long)first < rows->length ? WIDTH : 0};
  return whole;
#endif
  const Chunk chunk = chunk_of(rows->index.count, rows->length, PART, (rows->length + PART - 1) / PART);
  Part part = {0, 0, 0, chunk.row * rows->length + chunk.first, max((int)chunk.count, 0)};
  if (chunk.count <= 0) return part;
  const Offsets at = offsets_at(&rows->index, chunk.row);
  part.a = at.a + (ulong)(chunk.first * rows->a_step);
  part.b = at.b + (ulong)(chunk.first * rows->b_step);
  part.c = at.c + (ulong)(chunk.first * rows->c_step);
  return part;
}

floatw load_part(__global const void* data, int type, ulong at, long step, int count) {
  if (step == 0) return (floatw)load_float(data, type, at);
  float part[WIDTH] __attribute__((aligned(64)));
  for (int k = 0; k < WIDTH; ++k) part[k] = k < count ? load_float(data, type, at + (ulong)(k * step)) : 1.0f;
  return *(OF(near_float)*)part;
}

void store_part(__global void* data, int type, ulong at, long step, int count, floatw value) {
  float part[WIDTH] __attribute__((aligned(64)));
  *(OF(near_float)*)part = value;
  for (int k = 0; k < WIDTH && k < count; ++k) store_float(data, type, at + (ulong)(k * step), part[k]);
}

#define INPUT(a) __global const void *a, ulong a##_start, int a##_type
#define OUTPUT __global void *c, ulong c_start, int c_type

// Where the elements are neighbours whole vectors are moved, in a loop of its own: beside the other way compilers make
// slow code of it.
#ifdef DENSE  // all tensors are one row (with ROWS: several) of neighbours and whole vectors
#define IS_NEAR(a) true
#define WHOLE_VECTORS(k) if (at.count > 0)
#define THE_REST(k) if (false)
#else
#define IS_NEAR(a) (rows.a##_step == 1)
#define WHOLE_VECTORS(k) for (; (k) + WIDTH <= at.count; (k) += WIDTH)
#define THE_REST(k) for (; (k) < at.count; (k) += WIDTH)
#endif
#ifdef TYPED  // all tensors have this type
#define LOAD_NEAR(a) LOAD_WIDE(WIDTH, TYPED)((__global const STORAGE(TYPED)*)a, a##_start + at.a + (ulong)k)
#define STORE_NEAR(value) STORE_WIDE(WIDTH, TYPED)((__global STORAGE(TYPED)*)c, c_start + at.c + (ulong)k, value)
#else
#define LOAD_NEAR(a) OF(load_floats)(a, a##_type, a##_start + at.a + (ulong)k)
#define STORE_NEAR(value) OF(store_floats)(c, c_type, c_start + at.c + (ulong)k, value)
#endif
#define LOAD_FAR(a) load_part(a, a##_type, a##_start + at.a + (ulong)(k * rows.a##_step), rows.a##_step, at.count - k)
#define STORE_FAR(value) \
  store_part(c, c_type, c_start + at.c + (ulong)(k * rows.c_step), rows.c_step, at.count - k, value)

#define UNARY(op, result)                                                           \
  floatw value_##op(floatw x) { return result; }                                    \
  __kernel void op(INPUT(a), OUTPUT, Rows rows) {                                   \
    const Part at = part_of(&rows);                                                 \
    int k = 0;                                                                      \
    if (IS_NEAR(a) && IS_NEAR(c))                                                   \
      WHOLE_VECTORS(k) STORE_NEAR(value_##op(LOAD_NEAR(a)));                        \
    THE_REST(k) STORE_FAR(value_##op(LOAD_FAR(a)));                                 \
  }
// `between`: to where b begins in its tensor.
#define BINARY(op, result)                                                          \
  floatw value_##op(floatw x, floatw y) { return result; }                          \
  __kernel void op(INPUT(a), INPUT(b), OUTPUT, Rows rows, ulong between) {          \
    const Part at = part_of(&rows);                                                 \
    int k = 0;                                                                      \
    b_start += between;                                                             \
    if (IS_NEAR(a) && IS_NEAR(b) && IS_NEAR(c))                                     \
      WHOLE_VECTORS(k) STORE_NEAR(value_##op(LOAD_NEAR(a), LOAD_NEAR(b)));          \
    THE_REST(k) STORE_FAR(value_##op(LOAD_FAR(a), LOAD_FAR(b)));                    \
  }

// gelu by tanh is x s(u) with u = 2 sqrt(2 / pi) (x + 0.044715 x^3).
#define CUBIC(x) ((x) * ((x) * (x) * 0.071354816f + 1.5957691f))

UNARY(op_cast, x)
UNARY(op_relu, (x <= 0.0f ? (floatw)0.0f : x))  // NaN stays
UNARY(op_gelu, x* OF(phi_of)(x))
UNARY(op_gelu_tanh, x* OF(sigmoid_of)(CUBIC(x)))
UNARY(op_silu, x* OF(sigmoid_of)(x))
UNARY(op_sigmoid, OF(sigmoid_of)(x))
UNARY(op_tanh, OF(tanh_of)(x))
UNARY(op_log, OF(log_of)(x))
UNARY(op_exp, OF(exp_of)(x))
UNARY(op_sqrt, sqrt(x))

BINARY(op_add, x + y)
BINARY(op_sub, x - y)
BINARY(op_mul, x* y)
BINARY(op_div, x / y)
BINARY(op_silu_mul, x* OF(sigmoid_of)(x) * y)

// What reaches the input x of the gradient y of the output. The other side of a sigmoid is computed for itself: 1 - s
// would have lost it where s is near 1.
floatw gelu_slope(floatw x) { return OF(phi_of)(x) + x * 0.3989422804f * OF(exp_of)(-0.5f * x * x); }
floatw gelu_tanh_slope(floatw x) {
  const floatw near = BETWEEN(x, (floatw)-30.0f, (floatw)30.0f);  // further out the square could overflow
  const floatw u = CUBIC(near), inner = near * near * (3.0f * 0.071354816f) + 1.5957691f;
  return OF(sigmoid_of)(u) * (1.0f + near * inner * OF(sigmoid_of)(-u)) + (x - x);  // NaN at infinity
}
BINARY(op_relu_backward, (x <= 0.0f ? (floatw)0.0f : y))
BINARY(op_gelu_backward, y* gelu_slope(x))
BINARY(op_gelu_tanh_backward, y* gelu_tanh_slope(x))
BINARY(op_silu_backward, y * (OF(sigmoid_of)(x) * (1.0f + x * OF(sigmoid_of)(-x))))
BINARY(op_sigmoid_backward, y * (OF(sigmoid_of)(x) * OF(sigmoid_of)(-x)))
BINARY(op_tanh_backward, y * (4.0f * OF(sigmoid_of)(x + x) * OF(sigmoid_of)(-(x + x))))

// Integers wrap around.
#define INTEGERS(op, result)                                                                                   \
  __kernel void op(INPUT(a), INPUT(b), OUTPUT, Rows rows, ulong between) {                                     \
    const Part at = part_of(&rows);                                                                            \
    for (int k = 0; k < at.count; ++k) {                                                                       \
      const ulong x = (ulong)load_integer(a, a_type, a_start + at.a + (ulong)(k * rows.a_step));               \
      const ulong y = (ulong)load_integer(b, b_type, b_start + between + at.b + (ulong)(k * rows.b_step));     \
      store_integer(c, c_type, c_start + at.c + (ulong)(k * rows.c_step), (long)(result));                     \
    }                                                                                                          \
  }
INTEGERS(op_add_integers, x + y)
INTEGERS(op_sub_integers, x - y)
INTEGERS(op_mul_integers, x* y)

// Philox 4x32 with 10 rounds: four random words that depend on the key and the counter alone. Of one counter, or four.
#define PHILOX(name, U, UL, to_u, to_ul)                                                       \
  void name(ulong key, UL counter, U* words) {                                                 \
    U x = to_u(counter), y = to_u(counter >> 32), z = 0, w = 0;                                \
    uint key_0 = (uint)key, key_1 = (uint)(key >> 32);                                         \
    for (int i = 0; i < 10; ++i) {                                                             \
      const UL p = to_ul(x) * 0xD2511F53ul, q = to_ul(z) * 0xCD9E8D57ul;                       \
      x = to_u(q >> 32) ^ y ^ key_0;                                                           \
      y = to_u(q);                                                                             \
      z = to_u(p >> 32) ^ w ^ key_1;                                                           \
      w = to_u(p);                                                                             \
      key_0 += 0x9E3779B9u;                                                                    \
      key_1 += 0xBB67AE85u;                                                                    \
    }                                                                                          \
    words[0] = x;                                                                              \
    words[1] = y;                                                                              \
    words[2] = z;                                                                              \
    words[3] = w;                                                                              \
  }
#define LOW(value) ((uint)(value))
#define LONG(value) ((ulong)(value))
PHILOX(philox, uint, ulong, LOW, LONG)

#ifdef CPU_DEVICE
PHILOX(philox_of_four, uint4, ulong4, convert_uint4, convert_ulong4)
void philox_words(ulong key, ulong counter, uint* words) {
  uint4 w[4];
  philox_of_four(key, counter + (ulong4)(0, 1, 2, 3), w);
  vstore4((uint4)(w[0].x, w[1].x, w[2].x, w[3].x), 0, words);
  vstore4((uint4)(w[0].y, w[1].y, w[2].y, w[3].y), 1, words);
  vstore4((uint4)(w[0].z, w[1].z, w[2].z, w[3].z), 2, words);
  vstore4((uint4)(w[0].w, w[1].w, w[2].w, w[3].w), 3, words);
}
#else
void philox_words(ulong key, ulong counter, uint* words) {
#pragma unroll
  for (int i = 0; i < WIDTH / 4; ++i) philox(key, counter + (ulong)i, words + 4 * i);
}
#endif

floatw dropped(floatw x, ulong seed, ulong first, ulong threshold, float inverse_share) {
  uint words[WIDTH + 4];
  philox_words(seed, first / 4, words);
  if (first & 3) {
    philox(seed, first / 4 + WIDTH / 4, words + WIDTH);
    // Indexed by constants alone, so that the words stay in registers.
#pragma unroll
    for (int i = 0; i + 1 < WIDTH + 4; ++i) words[i] = first & 1 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) words[i] = first & 2 ? words[i + 2] : words[i];
  }
  float part[WIDTH] __attribute__((aligned(64)));
  *(OF(near_float)*)part = x * inverse_share;
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) part[i] = (ulong)words[i] >= threshold ? part[i] : 0.0f;
  return *(OF(near_float)*)part;
}

// An element is kept if its word is at least the threshold: word i % 4 of counter i / 4, where i is its number in
// row-major order plus the offset. `seeds` holds seed and offset, unless its stride is 0.
__kernel void op_dropout(INPUT(a), __global const ulong* seeds, ulong seeds_start, OUTPUT, Rows rows, ulong seed,
                         long seeds_stride, ulong threshold, float inverse_share) {
  const Part at = part_of(&rows);
  ulong first = (ulong)at.number;
  if (seeds_stride != 0) {
    seed = seeds[seeds_start];
    first += seeds[seeds_start + (ulong)seeds_stride];
  }
  int k = 0;
  if (IS_NEAR(a) && IS_NEAR(c))
    WHOLE_VECTORS(k) STORE_NEAR(dropped(LOAD_NEAR(a), seed, first + (ulong)k, threshold, inverse_share));
  THE_REST(k) STORE_FAR(dropped(LOAD_FAR(a), seed, first + (ulong)k, threshold, inverse_share));
}

__kernel void clear_found(__global float* found, ulong found_start) {
  if (get_global_id(0) == 0) found[found_start] = 0.0f;
}

// A gradient that is not finite has no finite product with anything, so the products alone tell. All who find one store
// the same 1.
__kernel void op_unscale(INPUT(a), __global const float* inverse, ulong inverse_start, OUTPUT, __global float* found,
                         ulong found_start, Rows rows) {
  const Part at = part_of(&rows);
  const float by = inverse[inverse_start];
  intw special = 0;
  int k = 0;
  if (IS_NEAR(a) && IS_NEAR(c)) WHOLE_VECTORS(k) {
      const floatw result = LOAD_NEAR(a) * by;
      special |= (OF(as_int)(result) & 0x7f800000) == 0x7f800000;
      STORE_NEAR(result);
    }
  THE_REST(k) {
    const floatw result = LOAD_FAR(a) * by;
    special |= (OF(as_int)(result) & 0x7f800000) == 0x7f800000;
    STORE_FAR(result);
  }
  if (any(special)) found[found_start] = 1.0f;
}

typedef struct {
  Index heads;  // a: the input, b: the positions, c: the output
  long size;    // of a head
  long pairs;
  long a_step;  // from element to element of a head
  long c_step;
  long positions;  // of the tables
  long cos_stride;  // from position to position
  long cos_step;    // from pair to pair
  long sin_stride;
  long sin_step;
  long interleaved;
  long parts;       // of a head
  long part_pairs;  // of all parts but the last
} Rope;

// A work-item turns some pairs of a head: elements i and i + pairs, or neighbours where they are interleaved. The first
// of a head copies what is behind the pairs.
__kernel void op_rope(INPUT(a), INPUT(b), INPUT(cosines), INPUT(sines), OUTPUT, __global uint* fault, Rope rope) {
  const Chunk chunk = chunk_of(rope.heads.count, rope.pairs, rope.part_pairs, rope.parts);
  if (chunk.row >= rope.heads.count || (chunk.first > 0 && chunk.count <= 0)) return;
  const Offsets at = offsets_at(&rope.heads, chunk.row);
  const long position = load_integer(b, b_type, b_start + at.b);
  if (position < 0 || position >= rope.positions) {
    *fault = 1;
    return;
  }
  a_start += at.a;
  c_start += at.c;
  cosines_start += (ulong)(position * rope.cos_stride);
  sines_start += (ulong)(position * rope.sin_stride);
  const long end = chunk.first + chunk.count;
  long i = chunk.first;
  if (rope.a_step == 1 && rope.c_step == 1 && rope.cos_step == 1 && rope.sin_step == 1)
    for (; i + WIDTH <= end; i += WIDTH) {
      const floatw u = OF(load_floats)(cosines, cosines_type, cosines_start + (ulong)i);
      const floatw v = OF(load_floats)(sines, sines_type, sines_start + (ulong)i);
      const ulong first = (ulong)(rope.interleaved ? 2 * i : i);
      const ulong second = first + (rope.interleaved ? WIDTH : (ulong)rope.pairs);
      floatw x = OF(load_floats)(a, a_type, a_start + first), y = OF(load_floats)(a, a_type, a_start + second);
      if (rope.interleaved) {
        const floatw even = (floatw)(x.even, y.even), odd = (floatw)(x.odd, y.odd);
        const floatw turned = even * u - odd * v, other = odd * u + even * v;
        x.even = turned.lo;
        x.odd = other.lo;
        y.even = turned.hi;
        y.odd = other.hi;
      } else {
        const floatw turned = x * u - y * v;
        y = y * u + x * v;
        x = turned;
      }
      OF(store_floats)(c, c_type, c_start + first, x);
      OF(store_floats)(c, c_type, c_start + second, y);
    }
  const long each = rope.interleaved ? 2 : 1, apart = rope.interleaved ? 1 : rope.pairs;
  for (; i < end; ++i) {
    const ulong from = a_start + (ulong)(i * each * rope.a_step), to = c_start + (ulong)(i * each * rope.c_step);
    const float x = load_float(a, a_type, from), y = load_float(a, a_type, from + (ulong)(apart * rope.a_step));
    const float u = load_float(cosines, cosines_type, cosines_start + (ulong)(i * rope.cos_step));
    const float v = load_float(sines, sines_type, sines_start + (ulong)(i * rope.sin_step));
    store_float(c, c_type, to, x * u - y * v);
    store_float(c, c_type, to + (ulong)(apart * rope.c_step), y * u + x * v);
  }
  if (chunk.first != 0) return;
  for (long k = 2 * rope.pairs; k < rope.size; ++k)
    store_float(c, c_type, c_start + (ulong)(k * rope.c_step),
                load_float(a, a_type, a_start + (ulong)(k * rope.a_step)));
}
