// A kernel for each op, for any layout and any mix of f32, f16 and bf16. A work-item has WIDTH neighbours of a row, or
// fewer at its end.

#ifdef CPU_DEVICE
#define WIDTH 16
#else
#define WIDTH 4
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

Part part_of(Rows rows) {
  const long item = (long)get_global_id(0), parts = (rows.length + WIDTH - 1) / WIDTH;
  long row = 0;
  if (rows.index.count > 1)
    row = get_global_size(0) <= 0x7fffffff ? (long)((uint)item / (uint)parts) : item / parts;
  const long first = (item - row * parts) * WIDTH;
  Part part = {0, 0, 0, row * rows.length + first, 0};
  if (row >= rows.index.count || first >= rows.length) return part;
  const Offsets at = offsets_of(rows.index, row);
  part.a = at.a + (ulong)(first * rows.a_step);
  part.b = at.b + (ulong)(first * rows.b_step);
  part.c = at.c + (ulong)(first * rows.c_step);
  part.count = (int)min((long)WIDTH, rows.length - first);
  return part;
}

floatw load_part(__global const void* data, int type, ulong at, long step, int count) {
  if (step == 1 && count == WIDTH) return OF(load_floats)(data, type, at);
  if (step == 0) return (floatw)load_float(data, type, at);
  float part[WIDTH];
#pragma unroll
  for (int k = 0; k < WIDTH; ++k) part[k] = k < count ? load_float(data, type, at + (ulong)(k * step)) : 1.0f;
  return OF(vload)(0, part);
}

void store_part(__global void* data, int type, ulong at, long step, int count, floatw value) {
  if (step == 1 && count == WIDTH) {
    OF(store_floats)(data, type, at, value);
    return;
  }
  float part[WIDTH];
  OF(vstore)(value, 0, part);
#pragma unroll
  for (int k = 0; k < WIDTH; ++k)
    if (k < count) store_float(data, type, at + (ulong)(k * step), part[k]);
}

#define INPUT(a) __global const void *a, ulong a##_start, int a##_type
#define OUTPUT __global void *c, ulong c_start, int c_type
#define LOAD_PART(a) load_part(a, a##_type, a##_start + at.a, rows.a##_step, at.count)
#define STORE_PART(value) store_part(c, c_type, c_start + at.c, rows.c_step, at.count, value)

#define UNARY(op, result)                           \
  __kernel void op(INPUT(a), OUTPUT, Rows rows) {   \
    const Part at = part_of(rows);                  \
    if (at.count == 0) return;                      \
    const floatw x = LOAD_PART(a);                  \
    STORE_PART(result);                             \
  }
// `between`: to where b begins in its tensor.
#define BINARY(op, result)                                                 \
  __kernel void op(INPUT(a), INPUT(b), OUTPUT, Rows rows, ulong between) { \
    const Part at = part_of(rows);                                         \
    if (at.count == 0) return;                                             \
    b_start += between;                                                    \
    const floatw x = LOAD_PART(a), y = LOAD_PART(b);                       \
    STORE_PART(result);                                                    \
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
    const Part at = part_of(rows);                                                                             \
    for (int k = 0; k < at.count; ++k) {                                                                       \
      const ulong x = (ulong)load_integer(a, a_type, a_start + at.a + (ulong)(k * rows.a_step));               \
      const ulong y = (ulong)load_integer(b, b_type, b_start + between + at.b + (ulong)(k * rows.b_step));     \
      store_integer(c, c_type, c_start + at.c + (ulong)(k * rows.c_step), (long)(result));                     \
    }                                                                                                          \
  }
INTEGERS(op_add_integers, x + y)
INTEGERS(op_sub_integers, x - y)
INTEGERS(op_mul_integers, x* y)

// Philox 4x32 with 10 rounds: four random words that depend on the key and the counter alone.
uint4 philox(ulong key, ulong counter) {
  uint4 c = (uint4)((uint)counter, (uint)(counter >> 32), 0u, 0u);
  uint key_0 = (uint)key, key_1 = (uint)(key >> 32);
  for (int i = 0; i < 10; ++i) {
    const ulong p = 0xD2511F53ul * c.x, q = 0xCD9E8D57ul * c.z;
    c = (uint4)((uint)(q >> 32) ^ c.y ^ key_0, (uint)q, (uint)(p >> 32) ^ c.w ^ key_1, (uint)p);
    key_0 += 0x9E3779B9u;
    key_1 += 0xBB67AE85u;
  }
  return c;
}

// An element is kept if its word is at least the threshold: word i % 4 of counter i / 4, where i is its number in
// row-major order plus the offset. `seeds` holds seed and offset, unless its stride is 0.
__kernel void op_dropout(INPUT(a), __global const ulong* seeds, ulong seeds_start, OUTPUT, Rows rows, ulong seed,
                         long seeds_stride, ulong threshold, float kept_share) {
  const Part at = part_of(rows);
  if (at.count == 0) return;
  ulong first = (ulong)at.number;
  if (seeds_stride != 0) {
    seed = seeds[seeds_start];
    first += seeds[seeds_start + (ulong)seeds_stride];
  }
  uint words[WIDTH + 4];
#pragma unroll
  for (int i = 0; i <= WIDTH / 4; ++i) vstore4(philox(seed, first / 4 + (ulong)i), 0, words + 4 * i);
  // Indexed by constants alone, so that the words stay in registers.
#pragma unroll
  for (int i = 0; i + 1 < WIDTH + 4; ++i) words[i] = first & 1 ? words[i + 1] : words[i];
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) words[i] = first & 2 ? words[i + 2] : words[i];
  float part[WIDTH];
  OF(vstore)(LOAD_PART(a) / kept_share, 0, part);
#pragma unroll
  for (int i = 0; i < WIDTH; ++i) part[i] = (ulong)words[i] >= threshold ? part[i] : 0.0f;
  STORE_PART(OF(vload)(0, part));
}

__kernel void clear_found(__global float* found, ulong found_start) {
  if (get_global_id(0) == 0) found[found_start] = 0.0f;
}

// A gradient that is not finite has no finite product with anything, so the products alone tell. All who find one store
// the same 1.
__kernel void op_unscale(INPUT(a), __global const float* inverse, ulong inverse_start, OUTPUT, __global float* found,
                         ulong found_start, Rows rows) {
  const Part at = part_of(rows);
  if (at.count == 0) return;
  const floatw result = LOAD_PART(a) * inverse[inverse_start];
  STORE_PART(result);
  const intw special = (OF(as_int)(result) & 0x7f800000) == 0x7f800000;
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
  const long item = (long)get_global_id(0), head = item / rope.parts, part = item - head * rope.parts;
  if (head >= rope.heads.count) return;
  const Offsets at = offsets_of(rope.heads, head);
  const long position = load_integer(b, b_type, b_start + at.b);
  if (position < 0 || position >= rope.positions) {
    *fault = 1;
    return;
  }
  a_start += at.a;
  c_start += at.c;
  cosines_start += (ulong)(position * rope.cos_stride);
  sines_start += (ulong)(position * rope.sin_stride);
  const long apart = rope.interleaved ? 1 : rope.pairs, each = rope.interleaved ? 2 : 1;
  const long a_step = each * rope.a_step, c_step = each * rope.c_step;
  const long end = min(rope.pairs, (part + 1) * rope.part_pairs);
  for (long i = part * rope.part_pairs; i < end; i += WIDTH) {
    const int count = (int)min((long)WIDTH, end - i);
    const floatw x = load_part(a, a_type, a_start + (ulong)(i * a_step), a_step, count);
    const floatw y = load_part(a, a_type, a_start + (ulong)(i * a_step + apart * rope.a_step), a_step, count);
    const floatw u = load_part(cosines, cosines_type, cosines_start + (ulong)(i * rope.cos_step), rope.cos_step, count);
    const floatw v = load_part(sines, sines_type, sines_start + (ulong)(i * rope.sin_step), rope.sin_step, count);
    store_part(c, c_type, c_start + (ulong)(i * c_step), c_step, count, x * u - y * v);
    store_part(c, c_type, c_start + (ulong)(i * c_step + apart * rope.c_step), c_step, count, y * u + x * v);
  }
  if (part != 0) return;
  for (long i = 2 * rope.pairs; i < rope.size; i += WIDTH) {
    const int count = (int)min((long)WIDTH, rope.size - i);
    const floatw x = load_part(a, a_type, a_start + (ulong)(i * rope.a_step), rope.a_step, count);
    store_part(c, c_type, c_start + (ulong)(i * rope.c_step), rope.c_step, count, x);
  }
}
