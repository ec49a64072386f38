// The place of the extreme of each line, of any dtype: elements are compared by their bits, as integers.

/// Of the same order, turned round for the smallest; NaN is the largest in both cases.
long order_at(__global const void* data, int type, ulong i, int largest) {
  long order;
  if (type >= type_i64) {
    order = load_integer(data, type, i);
  } else {
    const bool words = type == type_f32 || type == type_tf32, halves = type == type_f16 || type == type_bf16;
    const int bits_type = type == type_f64 ? type_i64 : words ? type_i32 : halves ? type_i16 : type_i8;
    const long all = type == type_f64 ? LONG_MAX : words ? 0x7fffffffl : halves ? 0x7fffl : 0x7fl;
    long most = type == type_f8e4m3 ? 0x7el : 0x7cl;  // infinity, or without one the largest number
    if (type == type_f64) most = 0x7ff0000000000000l;
    if (words) most = 0x7f800000l;
    if (halves) most = type == type_f16 ? 0x7c00l : 0x7f80l;
    const long bits = load_integer(data, bits_type, i), size = bits & all;
    if (size > most) return LONG_MAX;
    order = bits < 0 ? -size : size;  // -0 is +0
  }
  return largest ? order : ~order;
}

typedef struct {
  long order;
  long place;
} Found;

/// Of equal ones the first, or the last.
bool wins(Found a, Found b, int last) {
  return a.order > b.order || (a.order == b.order && (last ? a.place > b.place : a.place < b.place));
}

/// Of every `lanes`th element, from number `lane` on.
Found extreme_of(__global const void* a, int a_type, ulong start, long length, long step, int largest, int last,
                 long lane, long lanes) {
  Found best = {LONG_MIN, last ? -1 : LONG_MAX};
  for (long i = lane; i < length; i += lanes) {
    const Found here = {order_at(a, a_type, start + (ulong)(i * step), largest), i};
    if (wins(here, best, last)) best = here;
  }
  return best;
}

#define ARGUMENTS                                                                                        \
  __global const void *a, ulong a_start, int a_type, __global void *c, ulong c_start, int c_type, Index lines, \
      long length, long step, int largest, int last

__kernel void arg_alone(ARGUMENTS) {
  const long line = (long)get_global_id(0);
  if (line >= lines.count) return;
  const Offsets at = offsets_at(&lines, line);
  const Found best = extreme_of(a, a_type, a_start + at.a, length, step, largest, last, 0, 1);
  store_integer(c, c_type, c_start + at.c, best.place);
}

// A work-group a line.
__kernel void arg_together(ARGUMENTS) {
  __local Found found[ITEMS];
  const int item = (int)get_local_id(0);
  const Offsets at = offsets_at(&lines, (long)get_group_id(0));
  Found best = extreme_of(a, a_type, a_start + at.a, length, step, largest, last, item, ITEMS);
  found[item] = best;
  for (int distance = ITEMS / 2; distance > 0; distance /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (item < distance) {
      const Found other = found[item + distance];
      if (wins(other, best, last)) best = other;
      found[item] = best;
    }
  }
  if (item == 0) store_integer(c, c_type, c_start + at.c, best.place);
}
