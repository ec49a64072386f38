// Functions of one element and of two, and tests: of vectors of floats (behind parts.cl), or with -D REALS one by one,
// of any types (behind reals.cl). The host names the ops' numbers (op_abs). Ops that are short share a kernel, since
// each kernel takes its time to compile; those of vectors that are long have their own, with -D LONG_KERNELS.

#ifdef REALS
typedef Real Value;
typedef Real Parameter;
#ifdef cl_khr_fp64
#define AS_BITS as_long
#define AS_VALUE as_double
#else
#define AS_BITS as_int
#define AS_VALUE as_float
#endif
#define WITHOUT_SIGN(x) fabs(x)
#else
typedef floatw Value;
typedef float Parameter;
#define AS_BITS OF(as_int)
#define AS_VALUE OF(as_float)
#define WITHOUT_SIGN(x) AS_VALUE(AS_BITS(x) & 0x7fffffff) /* PoCL calls fabs */
#endif
#define NUMBER(x) ((Value)(x))

// NaN wins over every number, and -0 is below +0.
Value larger(Value x, Value y) {
  const Value differing = x > y ? x : y, equal = AS_VALUE(AS_BITS(x) & AS_BITS(y));
  return x != x || y != y ? x + y : x == y ? equal : differing;
}
Value smaller(Value x, Value y) { return -larger(-x, -y); }
/// Of the divisor's sign.
Value floored_rest(Value x, Value y) {
  const Value rest = fmod(x, y);
  return rest != 0 && (rest < 0 ? y > 0 : y < 0) ? rest + y : rest;
}

#if !defined(REALS) && defined(CPU_DEVICE)
// PoCL's of a vector are wrong where one of its elements is far out.
#define WAVE(function)                                               \
  Value function##_of(Value x) {                                     \
    if (all(WITHOUT_SIGN(x) <= 8192)) return function(x);            \
    float part[WIDTH] __attribute__((aligned(64)));                  \
    *(Value*)part = x;                                               \
    for (int i = 0; i < WIDTH; ++i) part[i] = function(part[i]);     \
    return *(Value*)part;                                            \
  }
WAVE(sin)
WAVE(cos)
WAVE(tan)
#define SIN sin_of
#define COS cos_of
#define TAN tan_of
#else
#define SIN sin
#define COS cos
#define TAN tan
#endif

#ifdef REALS
#define ERF erf
#define POWER pow
#else
/// x (c + P(s) / Q(s)) with s = x^2, where the quotient is small beside c; from 3.92 on it is held at 1. Within 4 ulp.
Value erf_of(Value x) {
  const Value s = AT_MOST(x * x, NUMBER(3.92f * 3.92f));
  Value p = -0x1.9a8434p-17f * s - 0x1.3cd0cep-13f, q = 0x1.3f8994p-15f * s + 0x1.30c0e6p-10f;
  p = ((p * s - 0x1.e465fep-10f) * s + 0x1.464c22p-7f) * s + 0x1.16f388p-9f;
  q = ((q * s + 0x1.ea8346p-7f) * s + 0x1.d36448p-4f) * s + 0x1.01102ap-1f;
  p = p * s + 0x1.81baeap-1f;
  q = q * s + 1;
  return BETWEEN(x * (p / q + 0.375f), NUMBER(-1), NUMBER(1));
}
Value power_of(Value x, Value y) { return all(y == 2) ? x * x : pow(x, y); }
#define ERF erf_of
#define POWER power_of
#endif

// Of x and y, with the attributes p and q.
#define SHORT_OPS(EACH)                                                     \
  EACH(op_abs, WITHOUT_SIGN(x))                                             \
  EACH(op_neg, -x)                                                          \
  EACH(op_sign, x > 0 ? NUMBER(1) : x < 0 ? NUMBER(-1) : x)                 \
  EACH(op_floor, floor(x))                                                  \
  EACH(op_ceil, ceil(x))                                                    \
  EACH(op_round, rint(x))                                                   \
  EACH(op_reciprocal, 1 / x)                                                \
  EACH(op_clip, smaller(larger(x, NUMBER(p)), NUMBER(q)))                   \
  EACH(op_leaky_relu, x < 0 ? x * p : x)                                    \
  EACH(op_hard_sigmoid, BETWEEN(x * p + q, NUMBER(0), NUMBER(1)))           \
  EACH(op_hard_swish, x* BETWEEN(x / 6 + 0.5f, NUMBER(0), NUMBER(1)))       \
  EACH(op_maximum, larger(x, y))                                            \
  EACH(op_minimum, smaller(x, y))                                           \
  EACH(op_prelu, x < 0 ? x * y : x)
#define LONG_OPS_OF_ONE(EACH)                                               \
  EACH(op_erf, ERF(x))                                                      \
  EACH(op_sin, SIN(x))                                                      \
  EACH(op_cos, COS(x))                                                      \
  EACH(op_tan, TAN(x))                                                      \
  EACH(op_asin, asin(x))                                                    \
  EACH(op_acos, acos(x))                                                    \
  EACH(op_atan, atan(x))                                                    \
  EACH(op_sinh, sinh(x))                                                    \
  EACH(op_cosh, cosh(x))                                                    \
  EACH(op_asinh, asinh(x))                                                  \
  EACH(op_acosh, acosh(x))                                                  \
  EACH(op_atanh, atanh(x))                                                  \
  EACH(op_softplus, (x > 0 ? x : NUMBER(0)) + log1p(exp(-WITHOUT_SIGN(x)))) \
  EACH(op_elu, x < 0 ? p * expm1(x) : x)
#define LONG_OPS_OF_TWO(EACH)                                               \
  EACH(op_pow, POWER(x, y))                                                   \
  EACH(op_fmod, fmod(x, y))                                                 \
  EACH(op_remainder, floored_rest(x, y))
#define TESTS(EACH)                                                         \
  EACH(op_equal, x == y)                                                    \
  EACH(op_not_equal, x != y)                                                \
  EACH(op_less, x < y)                                                      \
  EACH(op_less_equal, x <= y)                                               \
  EACH(op_greater, x > y)                                                   \
  EACH(op_greater_equal, x >= y)                                            \
  EACH(op_isnan, x != x)                                                    \
  EACH(op_isinf, WITHOUT_SIGN(x) == INFINITY)
#define CASE(op, result) \
  case op:               \
    return result;

#ifdef REALS
Value value_of(int op, Value x, Value y, Parameter p, Parameter q) {
  switch (op) {
    SHORT_OPS(CASE)
    LONG_OPS_OF_ONE(CASE)
    LONG_OPS_OF_TWO(CASE)
    TESTS(CASE)
  }
  return x;
}

// Integers have 64 bits, and wrap around.

long negative(long x) { return (long)(0ul - (ulong)x); }
long rest_of(long x, long y) { return y == 0 || y == -1 ? 0 : x % y; }
long floored_rest_of(long x, long y) {
  const long rest = rest_of(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
long quotient_of(long x, long y) { return y == -1 ? negative(x) : y == 0 ? 0 : x / y; }
long integer_power(long base, long exponent) {
  if (exponent < 0) {  // a fraction is cut off
    if (base != 1 && base != -1) return 0;
    return exponent % 2 == 0 ? 1 : base;
  }
  ulong result = 1;
  for (ulong factor = (ulong)base; exponent != 0; exponent >>= 1, factor *= factor)
    if (exponent & 1) result *= factor;
  return (long)result;
}

#define INTEGER_OPS(EACH)                                         \
  EACH(op_abs, x < 0 ? negative(x) : x)                           \
  EACH(op_neg, negative(x))                                       \
  EACH(op_sign, (x > 0) - (x < 0))                                \
  EACH(op_clip, min(max(x, p), q))                                \
  EACH(op_maximum, max(x, y))                                     \
  EACH(op_minimum, min(x, y))                                     \
  EACH(op_pow, integer_power(x, y))                                    \
  EACH(op_fmod, rest_of(x, y))                                    \
  EACH(op_remainder, floored_rest_of(x, y))                       \
  EACH(op_trunc_div, quotient_of(x, y))                           \
  EACH(op_logical_and, x& y)                                      \
  EACH(op_logical_or, x | y)                                      \
  EACH(op_logical_xor, x ^ y)                                     \
  EACH(op_logical_not, x == 0)                                    \
  EACH(op_bitwise_and, x& y)                                      \
  EACH(op_bitwise_or, x | y)                                      \
  EACH(op_bitwise_xor, x ^ y)                                     \
  EACH(op_bitwise_not, a_type == type_bool ? x == 0 : ~x)         \
  EACH(op_shift_left, y < 0 || y > 63 ? 0 : (long)((ulong)x << y)) \
  EACH(op_shift_right, x >> (y < 0 || y > 63 ? 63 : y))           \
  EACH(op_equal, x == y)                                          \
  EACH(op_not_equal, x != y)                                      \
  EACH(op_less, x < y)                                            \
  EACH(op_less_equal, x <= y)                                     \
  EACH(op_greater, x > y)                                         \
  EACH(op_greater_equal, x >= y)
long integer_of(int op, int a_type, long x, long y, long p, long q) {
  switch (op) { INTEGER_OPS(CASE) }
  return x;
}

#define ONE_BY_ONE(name, T, load, store, result)                                                               \
  __kernel void name(__global const void* a, ulong a_start, int a_type, __global const void* b, ulong b_start, \
                     int b_type, __global void* c, ulong c_start, int c_type, Rows rows, int op, T p, T q,     \
                     long chunk, long chunks) {                                                                \
    const Chunk part = chunk_of(rows.index.count, rows.length, chunk, chunks);                                 \
    if (part.count <= 0) return;                                                                               \
    const Offsets at = offsets_at(&rows.index, part.row);                                                      \
    for (long i = part.first; i < part.first + part.count; ++i) {                                              \
      const T x = load(a, a_type, a_start + at.a + (ulong)(i * rows.a_step));                                  \
      const T y = load(b, b_type, b_start + at.b + (ulong)(i * rows.b_step));                                  \
      store(c, c_type, c_start + at.c + (ulong)(i * rows.c_step), result);                                     \
    }                                                                                                          \
  }
ONE_BY_ONE(of_reals, Real, load_any, store_any, value_of(op, x, y, p, q))
ONE_BY_ONE(of_integers, long, load_integer, store_any_integer, integer_of(op, a_type, x, y, p, q))

#else

// Often the second is one number.
#ifdef DENSE
#define IS_PLAIN(b) true
#define LOAD_PLAIN(b) LOAD_NEAR(b)
#else
#define IS_PLAIN(b) (IS_NEAR(b) || rows.b##_step == 0)
#define LOAD_PLAIN(b) (rows.b##_step == 0 ? NUMBER(load_float(b, b##_type, b##_start + at.b)) : LOAD_NEAR(b))
#endif
#define EACH_PART(LOADS_NEAR, NEAR, FAR)           \
  const Part at = part_of(&rows);                  \
  int k = 0;                                       \
  if (LOADS_NEAR && IS_NEAR(c)) WHOLE_VECTORS(k) { \
      NEAR;                                        \
    }                                              \
  THE_REST(k) { FAR; }
#define KERNEL_OF_ONE(op, result)                                                                                  \
  Value value_##op(Value x, Parameter p) { return result; }                                                        \
  __kernel void run_##op(INPUT(a), OUTPUT, Rows rows, int number, Parameter p, Parameter q) {                      \
    EACH_PART(IS_NEAR(a), STORE_NEAR(value_##op(LOAD_NEAR(a), p)), STORE_FAR(value_##op(LOAD_FAR(a), p)))          \
  }
#define KERNEL_OF_TWO(op, result)                                                                                  \
  Value value_##op(Value x, Value y) { return result; }                                                            \
  __kernel void run_##op(INPUT(a), INPUT(b), OUTPUT, Rows rows, int number, Parameter p, Parameter q) {            \
    EACH_PART(IS_NEAR(a) && IS_PLAIN(b), STORE_NEAR(value_##op(LOAD_NEAR(a), LOAD_PLAIN(b))),                        \
              STORE_FAR(value_##op(LOAD_FAR(a), LOAD_FAR(b))))                                                     \
  }

#ifdef LONG_KERNELS
#ifdef OP  // one alone: compilers for GPUs take long over all, and there are programs for several types
Value long_function(Value x, Parameter p) {
  switch (OP) { LONG_OPS_OF_ONE(CASE) }
  return x;
}
Value long_pair(Value x, Value y) {
  switch (OP) { LONG_OPS_OF_TWO(CASE) }
  return x;
}
KERNEL_OF_ONE(one, long_function(x, p))
KERNEL_OF_TWO(two, long_pair(x, y))
#else
LONG_OPS_OF_ONE(KERNEL_OF_ONE)
LONG_OPS_OF_TWO(KERNEL_OF_TWO)
#endif
#else

Value short_op(int op, Value x, Value y, Parameter p, Parameter q) {
  switch (op) { SHORT_OPS(CASE) }
  return x;
}
__kernel void of_one(INPUT(a), OUTPUT, Rows rows, int op, Parameter p, Parameter q) {
  EACH_PART(IS_NEAR(a), const Value x = LOAD_NEAR(a); STORE_NEAR(short_op(op, x, x, p, q)),
            const Value x = LOAD_FAR(a); STORE_FAR(short_op(op, x, x, p, q)))
}
__kernel void of_two(INPUT(a), INPUT(b), OUTPUT, Rows rows, int op, Parameter p, Parameter q) {
  EACH_PART(IS_NEAR(a) && IS_PLAIN(b), STORE_NEAR(short_op(op, LOAD_NEAR(a), LOAD_PLAIN(b), p, q)),
            STORE_FAR(short_op(op, LOAD_FAR(a), LOAD_FAR(b), p, q)))
}

typedef JOIN(uchar, WIDTH) Bools;
typedef Bools near_bools ELEMENT_ALIGNMENT(1);
Bools test_of(int op, Value x, Value y) {
#define TEST(op, result) \
  case op:               \
    truth = result;      \
    break;
  intw truth = 0;
  switch (op) { TESTS(TEST) }
  return JOIN(convert_uchar, WIDTH)(truth & 1);
}
void store_bools(__global uchar* to, Rows rows, int count, Bools bools) {
  uchar part[WIDTH] __attribute__((aligned(16)));
  *(Bools*)part = bools;
  for (int i = 0; i < WIDTH && i < count; ++i) to[i * rows.c_step] = part[i];
}
#define BOOLS_AT(step) ((__global uchar*)c + c_start + at.c + (ulong)(k * (step)))
#define STORE_BOOLS(bools) *(__global near_bools*)BOOLS_AT(1) = bools
#define STORE_FAR_BOOLS(bools) store_bools(BOOLS_AT(rows.c_step), rows, at.count - k, bools)
__kernel void test_one(INPUT(a), OUTPUT, Rows rows, int op, Parameter p, Parameter q) {
  EACH_PART(IS_NEAR(a), const Value x = LOAD_NEAR(a); STORE_BOOLS(test_of(op, x, x)), const Value x = LOAD_FAR(a);
            STORE_FAR_BOOLS(test_of(op, x, x)))
}
__kernel void test_two(INPUT(a), INPUT(b), OUTPUT, Rows rows, int op, Parameter p, Parameter q) {
  EACH_PART(IS_NEAR(a) && IS_PLAIN(b), STORE_BOOLS(test_of(op, LOAD_NEAR(a), LOAD_PLAIN(b))),
            STORE_FAR_BOOLS(test_of(op, LOAD_FAR(a), LOAD_FAR(b))))
}
#endif
#endif
