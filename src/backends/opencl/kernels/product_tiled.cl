// A work-group of SIDE x SIDE items computes a tile of the output, each item PER x PER elements of it, from strips of a
// and b that all of them bring to local memory. Groups are counted in one dimension: some devices allow few in the
// others. With PER of 4 or 8 an item has runs of 4 rows and 4 columns, which it reads as vectors.

#define SIDE 16
#define ITEMS (SIDE * SIDE)
#define TILE (SIDE * PER)
// Deeper strips of large tiles need more registers than there are.
#if PER == 8
#define DEPTH 8
#else
#define DEPTH 16
#endif
#define PARTS (DEPTH * TILE / ITEMS)

#if PER == 1
#define RUN 1
#define LINE float
#define ITEM_COLUMNS SIDE
#else
#define RUN 4
#define LINE float4
#define ITEM_COLUMNS 8  // of 32 neighbours, which read fewer different vectors so
#endif
#define RUNS (PER / RUN)
// The gap spreads writes over the banks and keeps vectors aligned.
#define WIDTH (TILE + RUN)
#define STRIP (DEPTH * WIDTH)

// What an item brings of a strip: PARTS elements, the first at `line` and `step`.
typedef struct {
  int line;
  int step;
  int line_on;
  int step_on;
} Share;

// Neighbours of the group read neighbours in memory, which are along k or along the lines.
Share share_of(int item, bool along_k) {
  const Share by_step = {item / DEPTH, item % DEPTH, ITEMS / DEPTH, 0};
  const Share by_line = {item % TILE, item / TILE, 0, ITEMS / TILE};
  return along_k ? by_step : by_line;
}

#ifdef CONV
// b is an image: its columns are the windows of the output's pixels, its rows the taps, the channels fastest.
#define CONV_PARAMETER , Conv conv
#define COLUMN_OFFSET(i) output_offset(&conv, i)
#define B_VALUE(part, step) image_value(b, b_start, &conv, corner, k0 + DEPTH + (step))

float image_value(__global const STORAGE(B_TYPE) * b, ulong start, const Conv* conv, const long* corner, long term) {
  // Windows have few enough elements (has_modest_windows), and short divisions are fast.
  const uint channels = (uint)conv->in_channels;
  const uint tap = (uint)term / channels;
  const uint rest = tap / (uint)conv->taps[2];
  const long tap_at[3] = {rest / (uint)conv->taps[1], rest % (uint)conv->taps[1], tap % (uint)conv->taps[2]};
  long offset = (long)((uint)term % channels) * conv->x_channel;
  bool inside = true;
#pragma unroll
  for (int d = 0; d < 3; ++d) {
    const long at = corner[d] + tap_at[d] * conv->dilation[d];
    inside = inside && at >= 0 && at < conv->in[d];
    offset += at * conv->x[d];
  }
  return inside ? LOAD(B_TYPE)(b, start + (ulong)offset) : 0.0f;
}
#else
#define CONV_PARAMETER
#define COLUMN_OFFSET(i) ((i)*p.c.column)
#define B_VALUE(part, step) LOAD(B_TYPE)(b, b_at + (ulong)((part)*b_on))
#endif

__kernel __attribute__((reqd_work_group_size(SIDE * SIDE, 1, 1))) void product_tiled(
    __global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
    __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p CONV_PARAMETER) {
  __local float a_strips[2 * STRIP] __attribute__((aligned(16)));
  __local float b_strips[2 * STRIP] __attribute__((aligned(16)));

  const int item = (int)get_local_id(0);
  const int square = item / (ITEM_COLUMNS * 4);  // 4 x ITEM_COLUMNS items
  const int item_row = (square / (SIDE / ITEM_COLUMNS) * 4 + item / ITEM_COLUMNS % 4) * RUN;
  const int item_column = (square % (SIDE / ITEM_COLUMNS) * ITEM_COLUMNS + item % ITEM_COLUMNS) * RUN;
  const long tile_columns = (p.n + TILE - 1) / TILE;
  const long tile_rows = (p.m + TILE - 1) / TILE;
  const long tile = (long)get_group_id(0);
  const long column0 = tile % tile_columns * TILE;
  const long row0 = tile / tile_columns % tile_rows * TILE;
  const BatchStart at = batch_start(&p, tile / tile_columns / tile_rows);
  const long terms = terms_of(&p, tile / tile_columns / tile_rows);

  const Share of_a = share_of(item, p.a.column == 1);
  const int a_lines = (int)min(p.m - row0, (long)TILE) - of_a.line;
  const long a_on = of_a.line_on * p.a.row + of_a.step_on * p.a.column;
  ulong a_at = a_start + at.a + (ulong)((row0 + of_a.line) * p.a.row + of_a.step * p.a.column);
#ifdef CONV
  const Share of_b = share_of(item, false);
  const long pixel_count = conv.out[0] * conv.out[1] * conv.out[2];
  const long own_column = min(column0 + of_b.line, p.n - 1);
  const Place own_pixel = place_of(conv.out, own_column % pixel_count);
  const long corner[3] = {own_pixel.at[0] * conv.stride[0] - conv.padding[0],
                          own_pixel.at[1] * conv.stride[1] - conv.padding[1],
                          own_pixel.at[2] * conv.stride[2] - conv.padding[2]};
  b_start += at.b + (ulong)(own_column / pixel_count * conv.x_batch);
#else
  const Share of_b = share_of(item, p.b.row == 1);
  const long b_on = of_b.line_on * p.b.column + of_b.step_on * p.b.row;
#endif
  ulong b_at = b_start + at.b + (ulong)((column0 + of_b.line) * p.b.column + of_b.step * p.b.row);
  const int b_lines = (int)min(p.n - column0, (long)TILE) - of_b.line;

  float sum[PER][PER];
#pragma unroll
  for (int i = 0; i < PER; ++i)
#pragma unroll
    for (int j = 0; j < PER; ++j) sum[i][j] = 0.0f;
#ifdef LONG_SUMS
  float total[PER][PER] = {{0.0f}};
#endif

  // The next strip is on its way to one place while that in the other is multiplied; before the first there is none.
  const bool whole = TILE <= a_lines + of_a.line && TILE <= b_lines + of_b.line;
  __local float* a_strip = a_strips;
  __local float* b_strip = b_strips;
  for (long k0 = -DEPTH; k0 < terms; k0 += DEPTH) {
    float next_a[PARTS];
    float next_b[PARTS];
    const int steps = (int)min(terms - k0 - DEPTH, (long)DEPTH);
    if (whole && steps == DEPTH) {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        next_a[part] = LOAD(A_TYPE)(a, a_at + (ulong)(part * a_on));
        next_b[part] = B_VALUE(part, of_b.step + part * of_b.step_on);
      }
    } else {
#pragma unroll
      for (int part = 0; part < PARTS; ++part) {
        next_a[part] = 0.0f;
        if (part * of_a.line_on < a_lines && of_a.step + part * of_a.step_on < steps)
          next_a[part] = LOAD(A_TYPE)(a, a_at + (ulong)(part * a_on));
        next_b[part] = 0.0f;
        const int b_step = of_b.step + part * of_b.step_on;
        if (part * of_b.line_on < b_lines && b_step < steps) next_b[part] = B_VALUE(part, b_step);
      }
    }
    a_at += (ulong)(DEPTH * p.a.column);
    b_at += (ulong)(DEPTH * p.b.row);

    if (k0 >= 0) {
#pragma unroll
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
    }
#ifdef LONG_SUMS
    if ((k0 + DEPTH) % LONG_SUMS == 0)
#pragma unroll
      for (int i = 0; i < PER; ++i)
#pragma unroll
        for (int j = 0; j < PER; ++j) {
          total[i][j] += sum[i][j];
          sum[i][j] = 0.0f;
        }
#endif
    a_strip = a_strips + (a_strip == a_strips ? STRIP : 0);
    b_strip = b_strips + (b_strip == b_strips ? STRIP : 0);
#pragma unroll
    for (int part = 0; part < PARTS; ++part) {
      a_strip[(of_a.step + part * of_a.step_on) * WIDTH + of_a.line + part * of_a.line_on] = next_a[part];
      b_strip[(of_b.step + part * of_b.step_on) * WIDTH + of_b.line + part * of_b.line_on] = next_b[part];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

#ifdef LONG_SUMS
#pragma unroll
  for (int i = 0; i < PER; ++i)
#pragma unroll
    for (int j = 0; j < PER; ++j) sum[i][j] += total[i][j];
#endif
#if RUN == 4 && !defined(CONV)
  // Sums that only go to rows of vectors.
  const bool in_vectors = p.c.row % RUN == 0 && (uintptr_t)(c + c_start + at.c) % (RUN * sizeof(*c)) == 0;
  if (is_plain(finish) && p.c.column == 1 && in_vectors && column0 + TILE <= p.n) {
#pragma unroll
    for (int i = 0; i < PER; ++i) {
      const long row = row0 + item_row + i / RUN * (SIDE * RUN) + i % RUN;
      const ulong first = c_start + at.c + (ulong)(row * p.c.row + column0 + item_column);
#pragma unroll
      for (int j = 0; j < PER && row < p.m; j += RUN) {
        const float4 line = {sum[i][j], sum[i][j + 1], sum[i][j + 2], sum[i][j + 3]};
        STORE_WIDE(4, C_TYPE)(c, first + (ulong)(j * SIDE), line);
      }
    }
    return;
  }
#endif
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
