
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

