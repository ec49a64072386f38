// Convolutions with 3x3 filters and stride 1 by Winograd's minimal filtering: each tile of STEP x STEP outputs is made
// of SIDE x SIDE products for each channel. Three launches around a batch of SIDE * SIDE matrix products, whose
// operands lie in panels (conv_columns.cl). STEP is 2 or 4, a build option.

#define SIDE (STEP + 2)

// The transforms of one line, from `from` to `to`, elements `stride` apart.
#if STEP == 2
void filter_line(const float* from, float* to, int from_stride, int to_stride) {
  const float a = from[0], b = from[from_stride], c = from[2 * from_stride];
  to[0] = a;
  to[to_stride] = 0.5f * (a + b + c);
  to[2 * to_stride] = 0.5f * (a - b + c);
  to[3 * to_stride] = c;
}
void input_line(float* line, int stride) {
  const float a = line[0], b = line[stride], c = line[2 * stride], d = line[3 * stride];
  line[0] = a - c;
  line[stride] = b + c;
  line[2 * stride] = c - b;
  line[3 * stride] = b - d;
}
void output_line(float* line, int stride) {
  const float a = line[0], b = line[stride], c = line[2 * stride], d = line[3 * stride];
  line[0] = a + b + c;
  line[stride] = b - c - d;
}
#else
void filter_line(const float* from, float* to, int from_stride, int to_stride) {
  const float a = from[0], b = from[from_stride], c = from[2 * from_stride];
  to[0] = 0.25f * a;
  to[to_stride] = (-1.0f / 6) * (a + b + c);
  to[2 * to_stride] = (-1.0f / 6) * (a - b + c);
  to[3 * to_stride] = (1.0f / 24) * a + (1.0f / 12) * b + (1.0f / 6) * c;
  to[4 * to_stride] = (1.0f / 24) * a - (1.0f / 12) * b + (1.0f / 6) * c;
  to[5 * to_stride] = c;
}
void input_line(float* line, int stride) {
  const float a = line[0], b = line[stride], c = line[2 * stride];
  const float d = line[3 * stride], e = line[4 * stride], f = line[5 * stride];
  line[0] = 4.0f * a - 5.0f * c + e;
  line[stride] = (d + e) - 4.0f * (b + c);
  line[2 * stride] = (e - d) + 4.0f * (b - c);
  line[3 * stride] = (e - c) + 2.0f * (d - b);
  line[4 * stride] = (e - c) - 2.0f * (d - b);
  line[5 * stride] = 4.0f * b - 5.0f * d + f;
}
void output_line(float* line, int stride) {
  const float a = line[0], b = line[stride], c = line[2 * stride];
  const float d = line[3 * stride], e = line[4 * stride], f = line[5 * stride];
  line[0] = a + (b + c) + (d + e);
  line[stride] = (b - c) + 2.0f * (d - e);
  line[2 * stride] = (b + c) + 4.0f * (d + e);
  line[3 * stride] = (b - c) + 8.0f * (d - e) + f;
}
#endif

// Of one pair of channels: the 3x3 filter becomes one element of SIDE * SIDE matrices [channels out, channels in].
__kernel void winograd_filter(__global const STORAGE(A_TYPE) * w, ulong w_start, __global float* panels,
                              ulong panels_start, Conv p, long panel) {
  const long i = (long)get_global_id(0);
  if (i >= p.out_channels * p.in_channels) return;
  const long out = i % p.out_channels;
  const long in = i / p.out_channels;
  w_start += (ulong)(out * p.w_out + in * p.w_in);
  float taps[9];
  for (int tap = 0; tap < 9; ++tap)
    taps[tap] = LOAD(A_TYPE)(w, w_start + (ulong)(tap / 3 * p.w[1] + tap % 3 * p.w[2]));
  float lines[SIDE * 3];
  for (int column = 0; column < 3; ++column) filter_line(taps + column, lines + column, 3, 3);
  float tile[SIDE * SIDE];
  for (int row = 0; row < SIDE; ++row) filter_line(lines + row * 3, tile + row * SIDE, 1, 1);
  const long one = (p.out_channels + panel - 1) / panel * panel * p.in_channels;
  panels += panels_start + (ulong)((out / panel * p.in_channels + in) * panel + out % panel);
  for (int e = 0; e < SIDE * SIDE; ++e) panels[(ulong)(e * one)] = tile[e];
}

// Of one tile of one channel: what lies under it becomes one element of SIDE * SIDE matrices [channels in, tiles].
__kernel void winograd_input(__global const STORAGE(A_TYPE) * x, ulong x_start, __global float* panels,
                             ulong panels_start, Conv p, long panel) {
  const long i = (long)get_global_id(0);
  const long across = (p.out[2] + STEP - 1) / STEP;
  const long down = (p.out[1] + STEP - 1) / STEP;
  const long tiles = p.batch * down * across;
  if (i >= tiles * p.in_channels) return;
  const long place = i % tiles;
  const long channel = i / tiles;
  const long column0 = place % across * STEP - p.padding[2];
  const long row0 = place / across % down * STEP - p.padding[1];
  x_start += (ulong)(place / across / down * p.x_batch + channel * p.x_channel);
  float tile[SIDE * SIDE];
#pragma unroll
  for (int e = 0; e < SIDE * SIDE; ++e) {
    const long row = row0 + e / SIDE;
    const long column = column0 + e % SIDE;
    const bool inside = row >= 0 && row < p.in[1] && column >= 0 && column < p.in[2];
    tile[e] = inside ? LOAD(A_TYPE)(x, x_start + (ulong)(row * p.x[1] + column * p.x[2])) : 0.0f;
  }
#pragma unroll
  for (int column = 0; column < SIDE; ++column) input_line(tile + column, SIDE);
#pragma unroll
  for (int row = 0; row < SIDE; ++row) input_line(tile + row * SIDE, 1);
  const long one = (tiles + panel - 1) / panel * panel * p.in_channels;
  panels += panels_start + (ulong)((place / panel * p.in_channels + channel) * panel + place % panel);
#pragma unroll
  for (int e = 0; e < SIDE * SIDE; ++e) panels[(ulong)(e * one)] = tile[e];
}

// Of one tile of one channel: an element of each of the SIDE * SIDE products [channels out, tiles] becomes its outputs.
__kernel void winograd_output(__global const float* products, ulong products_start,
                              __global const STORAGE(D_TYPE) * bias, ulong bias_start, __global STORAGE(C_TYPE) * y,
                              ulong y_start, Conv p) {
  const long i = (long)get_global_id(0);
  const long across = (p.out[2] + STEP - 1) / STEP;
  const long down = (p.out[1] + STEP - 1) / STEP;
  const long tiles = p.batch * down * across;
  if (i >= tiles * p.out_channels) return;
  const long place = i % tiles;
  const long channel = i / tiles;
  float tile[SIDE * SIDE];
#pragma unroll
  for (int e = 0; e < SIDE * SIDE; ++e)
    tile[e] = products[products_start + (ulong)((e * p.out_channels + channel) * tiles + place)];
#pragma unroll
  for (int column = 0; column < SIDE; ++column) output_line(tile + column, SIDE);
#pragma unroll
  for (int row = 0; row < STEP; ++row) output_line(tile + row * SIDE, 1);
  const float added = p.has_bias ? LOAD(D_TYPE)(bias, bias_start + (ulong)(channel * p.bias_stride)) : 0.0f;
  const long column0 = place % across * STEP;
  const long row0 = place / across % down * STEP;
  y_start += (ulong)(place / across / down * p.y_batch + channel * p.y_channel);
  for (int row = 0; row < STEP; ++row)
    for (int column = 0; column < STEP; ++column)
      if (row0 + row < p.out[1] && column0 + column < p.out[2])
        STORE(C_TYPE)(y, y_start + (ulong)((row0 + row) * p.y[1] + (column0 + column) * p.y[2]),
                      tile[row * SIDE + column] + added);
}
