// Casts from and to all types, element by element. Floats are rounded once, ties to even; what becomes an integer
// is cut off and held in its range, NaN becomes 0; integers keep their low bits.

void cast_one(__global const void* a, int a_type, ulong from, __global void* c, int c_type, ulong to) {
  if (is_real(a_type))
    store_any(c, c_type, to, load_real(a, a_type, from));
  else
    store_any_integer(c, c_type, to, load_integer(a, a_type, from));
}

__kernel void cast_any(__global const void* a, ulong a_start, int a_type, __global void* c, ulong c_start, int c_type,
                       Rows rows, long chunk, long chunks) {
  const Chunk part = chunk_of(rows.index.count, rows.length, chunk, chunks);
  if (part.count <= 0) return;
  const Offsets at = offsets_at(&rows.index, part.row);
  for (long i = part.first; i < part.first + part.count; ++i)
    cast_one(a, a_type, a_start + at.a + (ulong)(i * rows.a_step), c, c_type,
             c_start + at.c + (ulong)(i * rows.c_step));
}
