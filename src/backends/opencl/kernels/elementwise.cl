// A kernel for each op, for any layout and any mix of f32, f16 and bf16, in parts of rows (parts.cl).

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
