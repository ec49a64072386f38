#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double Real;
/// Off by less than a step, and odd where it is off: rounded to fewer bits it is what the double would be.
float odd_float(double value) {
  const float near = (float)value;
  if (isnan(value) || (double)near == value) return near;
  const uint bits = as_uint(near) - (fabs((double)near) > fabs(value) ? 1u : 0u);
  return as_float(bits | 1u);
}
#else
typedef float Real;
float odd_float(float value) { return value; }
#endif

float odd_float_of_integer(long value) {
  const ulong size = value < 0 ? 0ul - (ulong)value : (ulong)value;
  const int extra = 40 - (int)clz(size);  // bits that a float has no room for
  if (extra <= 0) return (float)value;
  const ulong kept = (size >> extra) | ((size & ((1ul << extra) - 1ul)) != 0 ? 1ul : 0ul);
  const float result = (float)kept * as_float((extra + 127) << 23);
  return value < 0 ? -result : result;
}

// f8e4m3 has no infinity, and one NaN of each sign: all ones.
typedef struct {
  int mantissa_bits;
  int min_exponent;
  uint overflow;  // and all that is larger
  uint nan;
} Tiny;
Tiny tiny_of(int type) {
  const Tiny e4m3 = {3, -6, 0x7f, 0x7f}, e5m2 = {2, -14, 0x7c, 0x7e};
  return type == type_f8e4m3 ? e4m3 : e5m2;
}

uchar encode_tiny(Tiny tiny, float value) {
  const uint sign = as_uint(value) >> 24 & 0x80u;
  const float size = fabs(value);
  if (isnan(value)) return (uchar)(sign | tiny.nan);
  if (isinf(value)) return (uchar)(sign | tiny.overflow);
  const int exponent = max((int)(as_uint(size) >> 23) - 127, tiny.min_exponent);
  // In units of the last place it is rounded as an integer; a carry moves up one exponent by itself.
  const uint units = (uint)rint(size * as_float((127 + tiny.mantissa_bits - exponent) << 23));
  const uint bits = ((uint)(exponent - tiny.min_exponent) << tiny.mantissa_bits) + units;
  return (uchar)(sign | min(bits, tiny.overflow));
}

float decode_tiny(Tiny tiny, uchar bits) {
  const uint size = bits & 0x7fu;
  const float sign = bits & 0x80u ? -1.0f : 1.0f;
  if (tiny.overflow == 0x7c ? size > tiny.overflow : size == tiny.nan) return NAN;
  if (tiny.overflow == 0x7c && size == tiny.overflow) return sign * INFINITY;
  const int exponent = (int)(size >> tiny.mantissa_bits);
  const uint mantissa = size & ((1u << tiny.mantissa_bits) - 1u);
  const uint significand = exponent == 0 ? mantissa : mantissa | 1u << tiny.mantissa_bits;
  const int power = tiny.min_exponent + max(exponent, 1) - 1 - tiny.mantissa_bits;
  return sign * (float)significand * as_float((127 + power) << 23);
}

Real load_real(__global const void* data, int type, ulong i) {
#ifdef cl_khr_fp64
  if (type == type_f64) return ((__global const double*)data)[i];
#endif
  if (type == type_f8e4m3 || type == type_f8e5m2) return decode_tiny(tiny_of(type), ((__global const uchar*)data)[i]);
  return load_float(data, type == type_tf32 ? type_f32 : type, i);
}

/// Of a type under 32 bits.
void store_narrow(__global void* data, int type, ulong i, float value) {
  if (type == type_f8e4m3 || type == type_f8e5m2)
    ((__global uchar*)data)[i] = encode_tiny(tiny_of(type), value);
  else
    store_float(data, type, i, value);
}

void store_real(__global void* data, int type, ulong i, Real value) {
#ifdef cl_khr_fp64
  if (type == type_f64) {
    ((__global double*)data)[i] = value;
    return;
  }
#endif
  if (type == type_f32 || type == type_tf32)
    ((__global float*)data)[i] = (float)value;
  else
    store_narrow(data, type, i, odd_float(value));
}

void store_integer_as_real(__global void* data, int type, ulong i, long value) {
#ifdef cl_khr_fp64
  if (type == type_f64) {
    ((__global double*)data)[i] = (double)value;
    return;
  }
#endif
  if (type == type_f32 || type == type_tf32)
    ((__global float*)data)[i] = (float)value;
  else
    store_narrow(data, type, i, odd_float_of_integer(value));
}

long held_integer(int type, Real value) {
  const int bits = type == type_i64 ? 63 : type == type_i32 ? 31 : type == type_i16 ? 15 : type == type_i8 ? 7 : 8;
  const long most = bits == 63 ? LONG_MAX : (1l << bits) - 1;
  const long least = type == type_u8 ? 0 : -most - 1;
  if (isnan(value)) return 0;
  if (value >= (Real)most) return most;
  if (value <= (Real)least) return least;
  return (long)value;
}

bool is_real(int type) { return type < type_i64; }

/// Of every type.
Real load_any(__global const void* data, int type, ulong i) {
  return is_real(type) ? load_real(data, type, i) : (Real)load_integer(data, type, i);
}
void store_any(__global void* data, int type, ulong i, Real value) {
  if (is_real(type))
    store_real(data, type, i, value);
  else
    store_integer(data, type, i, type == type_bool ? value != 0 : held_integer(type, value));
}
void store_any_integer(__global void* data, int type, ulong i, long value) {
  if (is_real(type))
    store_integer_as_real(data, type, i, value);
  else
    store_integer(data, type, i, value);
}
