// Choices between two tensors, whatever they hold: in units of 1, 2, 4 or 8 bytes.

// The same struct is in pointwise.cpp. Tensors: the condition, the two inputs, the output.
typedef struct {
  Nest rows;  // of their first elements
  long length;
  long step[4];
} Choice;

#define WHERE(n, unit)                                                                                               \
  __kernel void where_##n(__global const uchar* condition, ulong condition_start, __global const unit* a,            \
                          ulong a_start, __global const unit* b, ulong b_start, __global unit* c, ulong c_start,     \
                          Choice choice, long chunk, long chunks) {                                                  \
    const Chunk part = chunk_of(choice.rows.count, choice.length, chunk, chunks);                                    \
    if (part.count <= 0) return;                                                                                     \
    const Places row = places_of(choice.rows, part.row);                                                             \
    condition += condition_start + row.at[0] + (ulong)(part.first * choice.step[0]);                                 \
    a += a_start + row.at[1] + (ulong)(part.first * choice.step[1]);                                                 \
    b += b_start + row.at[2] + (ulong)(part.first * choice.step[2]);                                                 \
    c += c_start + row.at[3] + (ulong)(part.first * choice.step[3]);                                                 \
    if (choice.step[0] == 1 && choice.step[1] == 1 && choice.step[2] == 1 && choice.step[3] == 1) {                  \
      for (long k = 0; k < part.count; ++k) {                                                                        \
        const unit x = a[k], y = b[k]; /* both, so that nothing branches */                                          \
        c[k] = condition[k] ? x : y;                                                                                 \
      }                                                                                                              \
      return;                                                                                                        \
    }                                                                                                                \
    for (long k = 0; k < part.count; ++k)                                                                            \
      c[k * choice.step[3]] = condition[k * choice.step[0]] ? a[k * choice.step[1]] : b[k * choice.step[2]];         \
  }

WHERE(1, uchar)
WHERE(2, ushort)
WHERE(4, uint)
WHERE(8, ulong)
