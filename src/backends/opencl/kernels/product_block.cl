// Products without local memory: `pack` brings each operand into panels of f32, and a work-item of `product_block`
// holds a block of ROWS x COLUMNS sums in registers while it reads two panels from end to end.

// Panel p of an operand has, for each step along k, its lines p * PANEL ... next to each other. Past the last line it
// has zeros, which only reach sums that are not stored.
typedef struct {
  long lines;
  long line_stride;
  long steps;
  long step_stride;
  long steps_per_item;
  long count;  // of batches
  long rank;
  long extent[6];
  long batch[6];
} Pack;

#ifdef PANEL
__kernel void pack(__global const STORAGE(A_TYPE) * a, ulong a_start, __global float* panels, ulong panels_start,
                   Pack p) {
  const long item = (long)get_global_id(0);
  const long panel_count = (p.lines + PANEL - 1) / PANEL;
  const long parts = (p.steps + p.steps_per_item - 1) / p.steps_per_item;
  if (item >= p.count * panel_count * parts) return;
  const long step0 = item % parts * p.steps_per_item;
  const long steps = min(p.steps - step0, p.steps_per_item);
  const long line0 = item / parts % panel_count * PANEL;
  const int lines = (int)min(p.lines - line0, (long)PANEL);
  const long batch = item / parts / panel_count;
  ulong from = a_start + (ulong)(line0 * p.line_stride + step0 * p.step_stride);
  long rest = batch;
  for (long dim = p.rank - 1; dim >= 0; --dim) {
    from += (ulong)(rest % p.extent[dim] * p.batch[dim]);
    rest /= p.extent[dim];
  }
  __global float* to = panels + panels_start + (ulong)(((item / parts) * p.steps + step0) * PANEL);
  for (long step = 0; step < steps; ++step) {
    if (lines == PANEL && p.line_stride == 1) {
#pragma unroll
      for (int i = 0; i < PANEL; ++i) to[i] = LOAD(A_TYPE)(a, from + (ulong)i);
    } else {
      for (int i = 0; i < PANEL; ++i)
        to[i] = i < lines ? LOAD(A_TYPE)(a, from + (ulong)(i * p.line_stride)) : 0.0f;
    }
    to += PANEL;
    from += (ulong)p.step_stride;
  }
}
#endif

#ifdef ROWS
#define LINE JOIN(float, COLUMNS)

#ifdef CONV
// b is an image: its columns are the windows of the output's pixels, its rows the taps, the channels fastest.
#define B_STORAGE STORAGE(B_TYPE)
#define CONV_PARAMETER , Conv conv
#define COLUMN_OFFSET(i) output_offset(&conv, i)
#else
#define B_STORAGE float
#define CONV_PARAMETER
#define COLUMN_OFFSET(i) ((i)*p.c.column)
#endif

#define ADD_STEP                                                               \
  {                                                                            \
    const LINE line = b_at[step];                                              \
    _Pragma("unroll") for (int i = 0; i < ROWS; ++i) sum[i] += a_at[i] * line; \
    a_at += ROWS;                                                              \
  }

// Panels are read through pointers to vectors: a vload is a function call on some CPU devices.
__kernel void product_block(__global const float* a, ulong a_start, __global const B_STORAGE* b, ulong b_start,
                            __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p,
                            long rows_together CONV_PARAMETER) {
  const long item = (long)get_global_id(0);
  const long row_panels = (p.m + ROWS - 1) / ROWS;
  const long column_panels = (p.n + COLUMNS - 1) / COLUMNS;
  if (item >= p.count * row_panels * column_panels) return;
  const long batch = item / (row_panels * column_panels);
  // Some panels of rows that stay in the cache, with each panel of columns in turn.
  const long here = item % (row_panels * column_panels);
  const long first = here / (rows_together * column_panels) * rows_together;
  const long together = min(rows_together, row_panels - first);
  const long inside = here - first * column_panels;
  const long row_panel = first + inside % together;
  const long column_panel = inside / together;

  const BatchStart at = batch_start(&p, batch);
  __global const float* a_at = a + a_start + at.a + (ulong)(row_panel * p.k * ROWS);
  LINE sum[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) sum[i] = (LINE)(0.0f);
#ifdef CONV
  Place pixels[COLUMNS];
  long images[COLUMNS];
  const long pixel_count = conv.out[0] * conv.out[1] * conv.out[2];
#pragma unroll
  for (int j = 0; j < COLUMNS; ++j) {
    const long column = min(column_panel * COLUMNS + j, p.n - 1);
    pixels[j] = place_of(conv.out, column % pixel_count);
    images[j] = (long)(b_start + at.b) + column / pixel_count * conv.x_batch;
  }
  Place tap;
  for (tap.at[0] = 0; tap.at[0] < conv.taps[0]; ++tap.at[0])
    for (tap.at[1] = 0; tap.at[1] < conv.taps[1]; ++tap.at[1])
      for (tap.at[2] = 0; tap.at[2] < conv.taps[2]; ++tap.at[2]) {
        long from[COLUMNS];
        bool there[COLUMNS];  // not on the padding, where another place is read instead
        bool inside = true;
        bool run = true;
        for (int j = 0; j < COLUMNS; ++j) {
          const long offset = tap_offset(&conv, pixels[j].at, tap.at);
          inside = inside && offset >= 0;
          from[j] = images[j] + max(offset, 0L);
          there[j] = offset >= 0;
          run = run && from[j] == from[0] + j;
        }
        for (long channel = 0; channel < conv.in_channels; ++channel) {
          LINE line;
          float* const values = (float*)&line;
          const ulong shift = (ulong)(channel * conv.x_channel);
          if (inside && run) {
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) values[j] = LOAD(B_TYPE)(b, (ulong)from[0] + shift + (ulong)j);
          } else {
#pragma unroll
            for (int j = 0; j < COLUMNS; ++j) {
              const float value = LOAD(B_TYPE)(b, (ulong)from[j] + shift);
              values[j] = there[j] ? value : 0.0f;
            }
          }
#pragma unroll
          for (int i = 0; i < ROWS; ++i) sum[i] += a_at[i] * line;
          a_at += ROWS;
        }
      }
#else
  __global const LINE* b_at = (__global const LINE*)(b + b_start + at.b + (ulong)(column_panel * p.k * COLUMNS));
  long step = 0;
#ifdef LONG_SUMS
  LINE total[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) total[i] = (LINE)(0.0f);
  for (long end = LONG_SUMS; end < p.k; end += LONG_SUMS) {
    for (; step < end; ++step) ADD_STEP
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      total[i] += sum[i];
      sum[i] = (LINE)(0.0f);
    }
  }
#endif
  for (; step < p.k; ++step) ADD_STEP
#ifdef LONG_SUMS
#pragma unroll
  for (int i = 0; i < ROWS; ++i) sum[i] += total[i];
#endif
#endif

  // Apart from the sums, which would leave their registers if they were read by a number.
  LINE result[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) result[i] = sum[i];
  const float* values = (const float*)result;
  const long row0 = row_panel * ROWS;
  const long column0 = column_panel * COLUMNS;
  const int rows = (int)min(p.m - row0, (long)ROWS);
  const int columns = (int)min(p.n - column0, (long)COLUMNS);
  c_start += at.c + (ulong)(row0 * p.c.row);
#ifndef CONV
  if (is_plain(finish) && columns == COLUMNS && p.c.column == 1) {
    c_start += (ulong)column0;
    for (int i = 0; i < rows; ++i) {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j)
        STORE(C_TYPE)(c, c_start + (ulong)(i * p.c.row) + (ulong)j, values[i * COLUMNS + j]);
    }
    return;
  }
#endif
  for (int j = 0; j < columns; ++j) {
    const ulong column_at = (ulong)COLUMN_OFFSET(column0 + j);
    for (int i = 0; i < rows; ++i) {
      const ulong d_at = at.d + (ulong)((row0 + i) * p.d.row + (column0 + j) * p.d.column);
      STORE(C_TYPE)(c, c_start + (ulong)(i * p.c.row) + column_at,
                    finished(values[i * COLUMNS + j], row0 + i, column0 + j, d_at, FINISH_ARGUMENTS));
    }
  }
}
#endif
