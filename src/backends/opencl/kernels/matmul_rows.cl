// Products of up to ROWS rows: each element of b is read once, where it lies, and used at once. Rows past the last are
// the last one again, and are not stored.

// With LONG_SUMS each sum is put together from sums of so many terms: a float that is added to more often loses digits.
#ifdef LONG_SUMS
#define TOTALS(type) type total[ROWS] = {(type)(0.0f)};
#define ADD_TO_TOTALS(now)                              \
  if (now) {                                            \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {  \
      total[i] += sum[i];                               \
      sum[i] = 0.0f;                                    \
    }                                                   \
  }
#define WITH_TOTAL(i) (total[i] + sum[i])
#else
#define TOTALS(type)
#define ADD_TO_TOTALS(now)
#define WITH_TOTAL(i) sum[i]
#endif

// The 8 elements from `at` on that a lane adds up: neighbours of the group read neighbours in memory.
#if LANES == 1
#define EIGHT(type, data, at) LOAD_WIDE(8, type)(data, at)
#else
#define ONE(type, data, at, j) LOAD(type)(data, (at) + (ulong)((j)*LANES))
#define EIGHT(type, data, at)                                                                                  \
  (float8)(ONE(type, data, at, 0), ONE(type, data, at, 1), ONE(type, data, at, 2), ONE(type, data, at, 3),     \
           ONE(type, data, at, 4), ONE(type, data, at, 5), ONE(type, data, at, 6), ONE(type, data, at, 7))
#endif

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
  TOTALS(float8)
  for (long step = lane; step < whole; step += LANES * 8) {
    ADD_TO_TOTALS((step - lane) % (8 * LANES * LONG_SUMS) == 0)
    const float8 line = EIGHT(B_TYPE, b, b_start + (ulong)step);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sum[i] += EIGHT(A_TYPE, a, a_at[i] + (ulong)step) * line;
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const float8 s = WITH_TOTAL(i);
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

// b's rows are contiguous.
#define STORE_SUM(i, j, sum)                                                                         \
  STORE(C_TYPE)(c, c_start + at.c + (ulong)((i) * p.c.row + (j) * p.c.column),                       \
                finished(sum, i, j, at.d + (ulong)((i) * p.d.row + (j) * p.d.column), FINISH_ARGUMENTS))

#if LANES > 1
// A group has COLUMNS columns, and LANES work-items share the sums of each.
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
  TOTALS(float)
#pragma unroll 8
  for (long step = lane; step < p.k; step += LANES) {
    ADD_TO_TOTALS((step - lane) % (LANES * LONG_SUMS) == 0)
    const float value = LOAD(B_TYPE)(b, b_start + (ulong)(step * p.b.row));
#pragma unroll
    for (int i = 0; i < ROWS; ++i) sum[i] += LOAD(A_TYPE)(a, a_at[i] + (ulong)(step * p.a.column)) * value;
  }
#pragma unroll
  for (int i = 0; i < ROWS; ++i) parts[lane][i][item % COLUMNS] = WITH_TOTAL(i);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int e = item; e < ROWS * COLUMNS; e += LANES * COLUMNS) {
    const int i = e / COLUMNS;
    const long column = column0 + e % COLUMNS;
    float total = 0.0f;
    for (int j = 0; j < LANES; ++j) total += parts[j][i][e % COLUMNS];
    if (i < p.m && column < p.n) STORE_SUM(i, column, total);
  }
}
#else
// A work-item has `each` columns, up to COLUMNS, whose sums stay in the nearest cache: rows of b are read in long runs,
// STEPS of them at a time.
#define STEPS 4
#define ADD_STEPS(steps)                                                                             \
  {                                                                                                  \
    float value[ROWS][steps];                                                                        \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i)                                                 \
      _Pragma("unroll") for (int s = 0; s < steps; ++s)                                              \
        value[i][s] = LOAD(A_TYPE)(a, a_at[i] + (ulong)((step + s) * p.a.column));                   \
    for (int v = 0; v < vectors; ++v) {                                                              \
      float16 line[steps];                                                                           \
      _Pragma("unroll") for (int s = 0; s < steps; ++s)                                              \
        line[s] = LOAD_WIDE(16, B_TYPE)(b, b_start + (ulong)((step + s) * p.b.row + v * 16));        \
      _Pragma("unroll") for (int i = 0; i < ROWS; ++i) {                                             \
        float16 part = sum[i][v];                                                                    \
        _Pragma("unroll") for (int s = 0; s < steps; ++s) part += value[i][s] * line[s];             \
        sum[i][v] = part;                                                                            \
      }                                                                                              \
    }                                                                                                \
    for (int j = vectors * 16; j < columns; ++j)                                                     \
      _Pragma("unroll") for (int s = 0; s < steps; ++s) {                                            \
        const float one = LOAD(B_TYPE)(b, b_start + (ulong)((step + s) * p.b.row + j));              \
        _Pragma("unroll") for (int i = 0; i < ROWS; ++i)((float*)sum[i])[j] += value[i][s] * one;     \
      }                                                                                              \
  }
__kernel void rows_along_n(__global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b,
                           ulong b_start, __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p,
                           long each) {
  const long item = (long)get_global_id(0);
  const long items = (p.n + each - 1) / each;
  if (item >= p.count * items) return;
  const long column0 = item % items * each;
  const int columns = (int)min(p.n - column0, each), vectors = columns / 16;
  const BatchStart at = batch_start(&p, item / items);
  b_start += at.b + (ulong)column0;
  ulong a_at[ROWS];
  float16 sum[ROWS][COLUMNS / 16];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    a_at[i] = a_start + at.a + (ulong)(min((long)i, p.m - 1) * p.a.row);
    for (int v = 0; v < (columns + 15) / 16; ++v) sum[i][v] = 0.0f;
  }
  long step = 0;
#ifdef LONG_SUMS
  float16 total[ROWS][COLUMNS / 16] = {{(float16)(0.0f)}};
#define MOVE_SUMS(to, from)                           \
  for (int i = 0; i < ROWS; ++i)                      \
    for (int v = 0; v < (columns + 15) / 16; ++v) {   \
      to[i][v] += from[i][v];                         \
      from[i][v] = 0.0f;                              \
    }
  for (long end = LONG_SUMS; end < p.k; end += LONG_SUMS) {
    for (; step < end; step += STEPS) ADD_STEPS(STEPS)
    MOVE_SUMS(total, sum)
  }
#endif
  for (; step + STEPS <= p.k; step += STEPS) ADD_STEPS(STEPS)
  for (; step < p.k; ++step) ADD_STEPS(1)
#ifdef LONG_SUMS
  MOVE_SUMS(sum, total)
#endif
#pragma unroll
  for (int i = 0; i < ROWS; ++i)
    if (i < p.m)
      for (int j = 0; j < columns; ++j) STORE_SUM(i, column0 + j, ((float*)sum[i])[j]);
}
#endif
