// Products of up to ROWS rows: each element of b is read once, where it lies, and used at once. Rows past the last are
// the last one again, and are not stored.

// b's columns are contiguous along k, and so are a's rows: LANES work-items share the sums of a column.
__kernel __attribute__((reqd_work_group_size(LANES, 1, 1))) void rows_along_k(
    __global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
    __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p) {
  __local float parts[ROWS][LANES];
  const int lane = (int)get_local_id(0);
  const long column = (long)get_group_id(0) % p.n;
  const BatchStart at = batch_start(&p, (long)get_group_id(0) / p.n);
  b_start += at.b + (ulong)(column * p.b.column);
  ulong a_at[ROWS];
  float8 sum[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    a_at[i] = a_start + at.a + (ulong)(min((long)i, p.m - 1) * p.a.row);
    sum[i] = (float8)(0.0f);
  }
  const long whole = p.k / (8 * LANES) * (8 * LANES);
  for (long step = lane; step < whole; step += LANES * 8) {
    float8 line;
#pragma unroll
    for (int j = 0; j < 8; ++j) ((float*)&line)[j] = LOAD(B_TYPE)(b, b_start + (ulong)(step + j * LANES));
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      float8 row;
#pragma unroll
      for (int j = 0; j < 8; ++j) ((float*)&row)[j] = LOAD(A_TYPE)(a, a_at[i] + (ulong)(step + j * LANES));
      sum[i] += row * line;
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const float8 s = sum[i];
    float part = ((s.s0 + s.s4) + (s.s2 + s.s6)) + ((s.s1 + s.s5) + (s.s3 + s.s7));
    for (long step = whole + lane; step < p.k; step += LANES)
      part += LOAD(A_TYPE)(a, a_at[i] + (ulong)step) * LOAD(B_TYPE)(b, b_start + (ulong)step);
    parts[i][lane] = part;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = lane; i < ROWS; i += LANES) {
    float total = 0.0f;
    for (int j = 0; j < LANES; ++j) total += parts[i][j];
    if (i < p.m)
      STORE(C_TYPE)(c, c_start + at.c + (ulong)(i * p.c.row + column * p.c.column),
                    finished(total, i, column, at.d + (ulong)(i * p.d.row + column * p.d.column), FINISH_ARGUMENTS));
  }
}

#if LANES > 1
// b's rows are contiguous: a group has COLUMNS columns, and LANES work-items share the sums of each.
__kernel __attribute__((reqd_work_group_size(LANES * COLUMNS, 1, 1))) void rows_along_n(
    __global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
    __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p) {
  __local float parts[LANES][ROWS][COLUMNS];
  const int item = (int)get_local_id(0);
  const int lane = item / COLUMNS;
  const long groups = (p.n + COLUMNS - 1) / COLUMNS;
  const long column0 = (long)get_group_id(0) % groups * COLUMNS;
  const BatchStart at = batch_start(&p, (long)get_group_id(0) / groups);
  // Columns past the last are the last one again.
  b_start += at.b + (ulong)min(column0 + item % COLUMNS, p.n - 1);
  ulong a_at[ROWS];
  float sum[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    a_at[i] = a_start + at.a + (ulong)(min((long)i, p.m - 1) * p.a.row);
    sum[i] = 0.0f;
  }
#pragma unroll 8
  for (long step = lane; step < p.k; step += LANES) {
    const float value = LOAD(B_TYPE)(b, b_start + (ulong)(step * p.b.row));
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sum[i] += LOAD(A_TYPE)(a, a_at[i] + (ulong)(step * p.a.column)) * value;
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) parts[lane][i][item % COLUMNS] = sum[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int e = item; e < ROWS * COLUMNS; e += LANES * COLUMNS) {
    const int i = e / COLUMNS;
    const long column = column0 + e % COLUMNS;
    float total = 0.0f;
    for (int j = 0; j < LANES; ++j) total += parts[j][i][e % COLUMNS];
    if (i < p.m && column < p.n)
      STORE(C_TYPE)(c, c_start + at.c + (ulong)(i * p.c.row + column * p.c.column),
                    finished(total, i, column, at.d + (ulong)(i * p.d.row + column * p.d.column), FINISH_ARGUMENTS));
  }
}
#else
// b's rows are contiguous: a work-item has COLUMNS columns.
__kernel void rows_along_n(__global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b,
                           ulong b_start, __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p) {
  const long item = (long)get_global_id(0);
  const long items = (p.n + COLUMNS - 1) / COLUMNS;
  if (item >= p.count * items) return;
  const long column0 = item % items * COLUMNS;
  const int columns = (int)min(p.n - column0, (long)COLUMNS);
  const BatchStart at = batch_start(&p, item / items);
  b_start += at.b + (ulong)column0;
  ulong a_at[ROWS];
  float sum[ROWS][COLUMNS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    a_at[i] = a_start + at.a + (ulong)(min((long)i, p.m - 1) * p.a.row);
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) sum[i][j] = 0.0f;
  }
  for (long step = 0; step < p.k; ++step) {
    float line[COLUMNS];
    if (columns == COLUMNS) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) line[j] = LOAD(B_TYPE)(b, b_start + (ulong)(step * p.b.row + j));
    } else {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j)
        line[j] = j < columns ? LOAD(B_TYPE)(b, b_start + (ulong)(step * p.b.row + j)) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      const float value = LOAD(A_TYPE)(a, a_at[i] + (ulong)(step * p.a.column));
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j) sum[i][j] += value * line[j];
    }
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) {
      const long column = column0 + j;
      if (i < p.m && j < columns)
        STORE(C_TYPE)(c, c_start + at.c + (ulong)(i * p.c.row + column * p.c.column),
                      finished(sum[i][j], i, column, at.d + (ulong)(i * p.d.row + column * p.d.column),
                               FINISH_ARGUMENTS));
    }
}
#endif
