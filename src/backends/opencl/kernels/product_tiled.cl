// A work-group of SIDE x SIDE items computes a tile of the output, each item PER x PER elements of it, from strips of a
// and b that all of them bring to local memory. Groups are counted in one dimension: some devices allow few in the
// others. With PER of 4 or 8 an item has runs of 4 rows and 4 columns, which it reads as vectors.

#define SIDE 16
#define TILE (SIDE * PER)
#define DEPTH 16
#if PER == 1
#define RUN 1
#else
#define RUN 4
#endif
#define RUNS (PER / RUN)
// The gap spreads writes over the banks and keeps vectors aligned.
#define WIDTH (TILE + RUN)

#if PER == 1
#define LINE float
#else
#define LINE float4
#endif

#ifdef CONV
// b is an image: its columns are the windows of the output's pixels, its rows the taps, the channels fastest.
#define CONV_PARAMETER , Conv conv
#define COLUMN_OFFSET(i) output_offset(&conv, i)
#else
#define CONV_PARAMETER
#define COLUMN_OFFSET(i) ((i)*p.c.column)
#endif

__kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void product_tiled(
    __global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
    __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p CONV_PARAMETER) {
  __local float a_strip[DEPTH * WIDTH] __attribute__((aligned(16)));
  __local float b_strip[DEPTH * WIDTH] __attribute__((aligned(16)));

  const int item = (int)get_local_id(0);
  const int item_row = item / SIDE * RUN;
  const int item_column = item % SIDE * RUN;
  const long tile_columns = (p.n + TILE - 1) / TILE;
  const long tile_rows = (p.m + TILE - 1) / TILE;
  const long tile = (long)get_group_id(0);
  const long column0 = tile % tile_columns * TILE;
  const long row0 = tile / tile_columns % tile_rows * TILE;
  const BatchStart at = batch_start(&p, tile / tile_columns / tile_rows);
  const long terms = terms_of(&p, tile / tile_columns / tile_rows);
  a_start += at.a;
  b_start += at.b;
  // Neighbours of the group read neighbours in memory.
  const bool a_by_rows = p.a.column == 1;
#ifdef CONV
  const bool b_by_columns = false;
  const long pixel_count = conv.out[0] * conv.out[1] * conv.out[2];
  const long own_column = min(column0 + item % TILE, p.n - 1);  // the same for all parts of a strip
  const Place own_pixel = place_of(conv.out, own_column % pixel_count);
  b_start += (ulong)(own_column / pixel_count * conv.x_batch);
#else
  const bool b_by_columns = p.b.row == 1;
#endif

  float sum[PER][PER];
#pragma unroll
  for (int i = 0; i < PER; ++i)
#pragma unroll
    for (int j = 0; j < PER; ++j) sum[i][j] = 0.0f;

  for (long k0 = 0; k0 < terms; k0 += DEPTH) {
#pragma unroll
    for (int part = 0; part < DEPTH * TILE / (SIDE * SIDE); ++part) {
      const int e = part * SIDE * SIDE + item;
      const int a_line = a_by_rows ? e / DEPTH : e % TILE;
      const int a_step = a_by_rows ? e % DEPTH : e / TILE;
      float value = 0.0f;
      if (row0 + a_line < p.m && k0 + a_step < terms)
        value = LOAD(A_TYPE)(a, a_start + (ulong)((row0 + a_line) * p.a.row + (k0 + a_step) * p.a.column));
      a_strip[a_step * WIDTH + a_line] = value;

      const int b_line = b_by_columns ? e / DEPTH : e % TILE;
      const int b_step = b_by_columns ? e % DEPTH : e / TILE;
      value = 0.0f;
      if (column0 + b_line < p.n && k0 + b_step < terms) {
#ifdef CONV
        const Place tap = place_of(conv.taps, (k0 + b_step) / conv.in_channels);
        const long offset = tap_offset(&conv, own_pixel.at, tap.at);
        const long channel = (k0 + b_step) % conv.in_channels;
        if (offset >= 0) value = LOAD(B_TYPE)(b, b_start + (ulong)(offset + channel * conv.x_channel));
#else
        value = LOAD(B_TYPE)(b, b_start + (ulong)((column0 + b_line) * p.b.column + (k0 + b_step) * p.b.row));
#endif
      }
      b_strip[b_step * WIDTH + b_line] = value;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 4
    for (int step = 0; step < DEPTH; ++step) {
      LINE rows[RUNS];
      LINE columns[RUNS];
#pragma unroll
      for (int i = 0; i < RUNS; ++i) {
        rows[i] = *(__local const LINE*)(a_strip + step * WIDTH + item_row + i * (SIDE * RUN));
        columns[i] = *(__local const LINE*)(b_strip + step * WIDTH + item_column + i * (SIDE * RUN));
      }
#pragma unroll
      for (int i = 0; i < PER; ++i)
#pragma unroll
        for (int j = 0; j < PER; ++j) sum[i][j] += ((const float*)rows)[i] * ((const float*)columns)[j];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#pragma unroll
  for (int i = 0; i < PER; ++i) {
#pragma unroll
    for (int j = 0; j < PER; ++j) {
      const long row = row0 + item_row + i / RUN * (SIDE * RUN) + i % RUN;
      const long column = column0 + item_column + j / RUN * (SIDE * RUN) + j % RUN;
      if (row < p.m && column < p.n)
        STORE(C_TYPE)(c, c_start + at.c + (ulong)(row * p.c.row + COLUMN_OFFSET(column)),
                      finished(sum[i][j], row, column, at.d + (ulong)(row * p.d.row + column * p.d.column),
                               FINISH_ARGUMENTS));
    }
  }
}
