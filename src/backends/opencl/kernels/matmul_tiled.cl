// A work-group of SIDE x SIDE items computes a tile of the output, each item PER x PER elements of it, from strips of a
// and b that all of them bring to local memory. Operands are row-major; `index` runs over the batch.
// Groups are counted in one dimension: some devices allow few in the others.

#define SIDE 16
#define TILE (SIDE * PER)

__kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void matmul_tiled(
    __global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
    __global STORAGE(C_TYPE) * c, ulong c_start, Index index, long m, long n, long k) {
  // a lies transposed, so that the items of a group read neighbours; the odd width spreads its writes over the banks.
  __local float a_strip[SIDE][TILE + 1];
  __local float b_strip[SIDE][TILE];

  const int item = (int)get_local_id(0);
  const int item_row = item / SIDE;
  const int item_column = item % SIDE;
  const long tile_columns = (n + TILE - 1) / TILE;
  const long tile_rows = (m + TILE - 1) / TILE;
  const long tile = (long)get_group_id(0);
  const long column0 = tile % tile_columns * TILE;
  const long row0 = tile / tile_columns % tile_rows * TILE;
  const Offsets at = offsets_of(index, tile / tile_columns / tile_rows);

  float sum[PER][PER];
  for (int i = 0; i < PER; ++i)
    for (int j = 0; j < PER; ++j) sum[i][j] = 0.0f;

  for (long k0 = 0; k0 < k; k0 += SIDE) {
    for (int e = item; e < SIDE * TILE; e += SIDE * SIDE) {
      const long a_row = row0 + e / SIDE;
      const long a_column = k0 + e % SIDE;
      float value = 0.0f;
      if (a_row < m && a_column < k) value = LOAD(A_TYPE)(a, a_start + at.a + (ulong)(a_row * k + a_column));
      a_strip[e % SIDE][e / SIDE] = value;

      const long b_row = k0 + e / TILE;
      const long b_column = column0 + e % TILE;
      value = 0.0f;
      if (b_row < k && b_column < n) value = LOAD(B_TYPE)(b, b_start + at.b + (ulong)(b_row * n + b_column));
      b_strip[e / TILE][e % TILE] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = 0; step < SIDE; ++step)
      for (int i = 0; i < PER; ++i)
        for (int j = 0; j < PER; ++j)
          sum[i][j] += a_strip[step][item_row + i * SIDE] * b_strip[step][item_column + j * SIDE];
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  for (int i = 0; i < PER; ++i)
    for (int j = 0; j < PER; ++j) {
      const long row = row0 + item_row + i * SIDE;
      const long column = column0 + item_column + j * SIDE;
      if (row < m && column < n) STORE(C_TYPE)(c, c_start + at.c + (ulong)(row * n + column), sum[i][j]);
    }
}
