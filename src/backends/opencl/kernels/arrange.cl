// Elements that are taken by indices, or put in another arrangement, in units of 1, 2, 4 or 8 bytes.

// What each dim of the output, the innermost first, shows of a dim of the input. The same struct is in indexing.cpp.
typedef struct {
  long rows;  // all but the innermost dim
  long rank;
  long extent[8];
  long first[8];  // the place in the input of the first element
  long step[8];   // 1, or -1 where it is turned round
  long from[8];   // the input's extent
  long a_stride[8];
  long c_stride[8];
  long mode;      // of places outside of the input: 0 filled, 1 mirrored, 2 the edge, 3 from the other end
  long triangle;  // 0: all; 1: from the diagonal on, the rest is filled; 2: up to it
  long diagonal;
} Arrangement;

/// -1: none.
long place_in(long mode, long place, long extent) {
  if (place >= 0 && place < extent) return place;
  if (mode == 0) return -1;
  if (mode == 2) return place < 0 ? 0 : extent - 1;
  const long period = mode == 3 ? extent : max(2 * (extent - 1), 1l);
  long rest = place % period;
  if (rest < 0) rest += period;
  return rest < extent ? rest : period - rest;
}

/// From the front; -1: outside.
long from_front(long index, long extent) {
  if (index < -extent || index >= extent) return -1;
  return index < 0 ? index + extent : index;
}

// take: a row has one index, or one for each element.
#define ARRANGE(n, unit)                                                                                        \
  __kernel void take_##n(__global const unit* a, ulong a_start, __global const void* b, ulong b_start,          \
                         int b_type, __global unit* c, ulong c_start, __global uint* fault, Rows rows,          \
                         long extent, long stride, long chunk, long chunks) {                                   \
    const Chunk part = chunk_of(rows.index.count, rows.length, chunk, chunks);                                  \
    if (part.count <= 0) return;                                                                                \
    const Offsets at = offsets_at(&rows.index, part.row);                                                       \
    a += a_start + at.a + (ulong)(part.first * rows.a_step);                                                    \
    c += c_start + at.c + (ulong)(part.first * rows.c_step);                                                    \
    b_start += at.b + (ulong)(part.first * rows.b_step);                                                        \
    long place = 0;                                                                                             \
    for (long k = 0; k < (rows.b_step == 0 ? 1 : part.count); ++k) {                                            \
      place = from_front(load_integer(b, b_type, b_start + (ulong)(k * rows.b_step)), extent);                  \
      if (place < 0) {                                                                                          \
        *fault = 1;                                                                                             \
        return;                                                                                                 \
      }                                                                                                         \
      if (rows.b_step != 0) c[k * rows.c_step] = a[k * rows.a_step + place * stride];                           \
    }                                                                                                           \
    if (rows.b_step != 0) return;                                                                               \
    a += place * stride;                                                                                        \
    if (rows.a_step == 1 && rows.c_step == 1)                                                                   \
      for (long k = 0; k < part.count; ++k) c[k] = a[k];                                                        \
    else                                                                                                        \
      for (long k = 0; k < part.count; ++k) c[k * rows.c_step] = a[k * rows.a_step];                            \
  }                                                                                                             \
  __kernel void arrange_##n(__global const unit* a, ulong a_start, __global const unit* value,                  \
                            ulong value_start, int has_value, __global unit* c, ulong c_start,                  \
                            Arrangement to, long chunk, long chunks) {                                          \
    const Chunk part = chunk_of(to.rows, to.extent[0], chunk, chunks);                                          \
    if (part.count <= 0) return;                                                                                \
    const unit filling = has_value ? value[value_start] : 0;                                                    \
    const long a_step = to.a_stride[0], c_step = to.c_stride[0];                                                \
    long left = part.row, line = 0;                                                                             \
    bool filled = false;                                                                                        \
    a += a_start;                                                                                               \
    c += c_start + (ulong)(part.first * c_step);                                                                \
    _Pragma("unroll") for (int d = 1; d < 8; ++d) if (d < to.rank) {                                            \
      const long rest = left / to.extent[d], i = left - rest * to.extent[d];                                    \
      const long place = place_in(to.mode, to.first[d] + to.step[d] * i, to.from[d]);                           \
      filled = filled || place < 0;                                                                             \
      a += place * to.a_stride[d];                                                                              \
      c += i * to.c_stride[d];                                                                                  \
      if (d == 1) line = i;                                                                                     \
      left = rest;                                                                                              \
    }                                                                                                           \
    const long first = to.first[0] + to.step[0] * part.first;                                                   \
    if (to.mode != 0 || to.step[0] < 0) {                                                                       \
      for (long k = 0; k < part.count; ++k) {                                                                   \
        const long place = filled ? -1 : place_in(to.mode, first + to.step[0] * k, to.from[0]);                 \
        c[k * c_step] = place < 0 ? filling : a[place * a_step];                                                \
      }                                                                                                         \
      return;                                                                                                   \
    }                                                                                                           \
    long begin = -first, end = filled ? begin : to.from[0] - first;                                             \
    if (to.triangle == 1) begin = max(begin, line + to.diagonal - part.first);                                  \
    if (to.triangle == 2) end = min(end, line + to.diagonal + 1 - part.first);                                  \
    begin = clamp(begin, 0l, part.count);                                                                       \
    end = clamp(end, begin, part.count);                                                                        \
    a += first * a_step;                                                                                        \
    for (long k = 0; k < begin; ++k) c[k * c_step] = filling;                                                   \
    if (a_step == 1 && c_step == 1)                                                                             \
      for (long k = begin; k < end; ++k) c[k] = a[k];                                                           \
    else                                                                                                        \
      for (long k = begin; k < end; ++k) c[k * c_step] = a[k * a_step];                                         \
    for (long k = end; k < part.count; ++k) c[k * c_step] = filling;                                            \
  }

ARRANGE(1, uchar)
ARRANGE(2, ushort)
ARRANGE(4, uint)
ARRANGE(8, ulong)
