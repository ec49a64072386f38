// Any layout, any groups. What follows is of one output channel: `x` starts at its group's first channel in its image,
// `w` at its weights.

#define CONV_PARAMETERS                                                                                 \
  __global const STORAGE(A_TYPE) * x, ulong x_start, __global const STORAGE(B_TYPE) * w, ulong w_start, \
      __global const STORAGE(D_TYPE) * bias, ulong bias_start, __global STORAGE(C_TYPE) * y, ulong y_start, Conv p
#define CONV_TENSORS                                                                                    \
  __global const STORAGE(A_TYPE) * x, ulong x_start, __global const STORAGE(B_TYPE) * w, ulong w_start, const Conv *p

// The taps from `first` on that meet the image, along one dim.
typedef struct {
  long at;  // where the first one does
  int first;
  int count;
} Taps;
Taps taps_of(const Conv* p, int d, long out) {
  Taps taps = {out * p->stride[d] - p->padding[d], 0, 0};
  if (taps.at < 0) {
    taps.first = (int)min((-taps.at + p->dilation[d] - 1) / p->dilation[d], p->taps[d]);
    taps.at += taps.first * p->dilation[d];
  }
  if (taps.at < p->in[d])
    taps.count = (int)min(p->taps[d] - taps.first, (p->in[d] - taps.at + p->dilation[d] - 1) / p->dilation[d]);
  return taps;
}

// Goes through the channels and taps of an output.
#define EACH_TERM(z, r, c, body)                                                                        \
  const long x_step = p->dilation[2] * p->x[2], x_row = p->dilation[1] * p->x[1];                       \
  for (long in = 0; in < p->in_channels; ++in)                                                          \
    for (int i = 0; i < (z).count; ++i) {                                                               \
      ulong x_line = x_start + (ulong)(in * p->x_channel + ((z).at + i * p->dilation[0]) * p->x[0] +    \
                                       (r).at * p->x[1] + (c).at * p->x[2]);                            \
      ulong w_line = w_start + (ulong)(in * p->w_in + ((z).first + i) * p->w[0] + (r).first * p->w[1] + \
                                       (c).first * p->w[2]);                                            \
      for (int j = 0; j < (r).count; ++j) {                                                             \
        ulong x_at = x_line, w_at = w_line;                                                             \
        for (int k = 0; k < (c).count; ++k) {                                                           \
          const float weight = LOAD(B_TYPE)(w, w_at);                                                   \
          body;                                                                                         \
          x_at += (ulong)x_step;                                                                        \
          w_at += (ulong)p->w[2];                                                                       \
        }                                                                                               \
        x_line += (ulong)x_row;                                                                         \
        w_line += (ulong)p->w[1];                                                                       \
      }                                                                                                 \
    }

float conv_one(CONV_TENSORS, Taps z, Taps r, long column, float sum) {
  const Taps c = taps_of(p, 2, column);
  EACH_TERM(z, r, c, sum += LOAD(A_TYPE)(x, x_at) * weight)
  return sum;
}

#ifndef CPU_DEVICE

__kernel void conv_direct(CONV_PARAMETERS) {
  const long item = (long)get_global_id(0);
  const long lines = p.out[0] * p.out[1], channels = p.groups * p.out_channels;
  if (item >= p.batch * channels * lines * p.out[2]) return;
  const long column = item % p.out[2], line = item / p.out[2] % lines;
  const long channel = item / p.out[2] / lines % channels, image = item / p.out[2] / lines / channels;
  x_start += (ulong)(image * p.x_batch + channel / p.out_channels * p.in_channels * p.x_channel);
  w_start += (ulong)(channel * p.w_out);
  y_start += (ulong)(image * p.y_batch + channel * p.y_channel);
  const Taps z = taps_of(&p, 0, line / p.out[1]), r = taps_of(&p, 1, line % p.out[1]);
  const float added = p.has_bias ? LOAD(D_TYPE)(bias, bias_start + (ulong)(channel * p.bias_stride)) : 0.0f;
  STORE(C_TYPE)(y, y_start + (ulong)(line / p.out[1] * p.y[0] + line % p.out[1] * p.y[1] + column * p.y[2]),
                conv_one(x, x_start, w, w_start, &p, z, r, column, added));
}

#else

// Neighbours in a row all of whose taps meet the image, which has neighbours there: every one or every second of them.
#define CONV_RUN(n)                                                                                     \
  float##n conv_run##n(CONV_TENSORS, Taps z, Taps r, long column, float added) {                        \
    const Taps c = {column * p->stride[2] - p->padding[2], 0, (int)p->taps[2]};                         \
    float##n sum = added;                                                                               \
    if (p->stride[2] == 1) {                                                                            \
      EACH_TERM(z, r, c, sum += LOAD_WIDE(n, A_TYPE)(x, x_at) * weight)                                 \
    } else {                                                                                            \
      EACH_TERM(z, r, c,                                                                                \
                sum += (float##n)(LOAD_WIDE(n, A_TYPE)(x, x_at).even,                                   \
                                  LOAD_WIDE(n, A_TYPE)(x, x_at + n).even) * weight)                     \
    }                                                                                                   \
    return sum;                                                                                         \
  }
CONV_RUN(4)
CONV_RUN(8)
CONV_RUN(16)

// The last run of a row may give some outputs once more.
#define STORE_RUNS(n)                                                                                   \
  if (whole_end - whole >= n)                                                                           \
    for (; whole < whole_end; whole += n) {                                                             \
      const long at = min(whole, whole_end - n);                                                        \
      STORE_WIDE(n, C_TYPE)(y, y_start + (ulong)at, conv_run##n(x, x_start, w, w_start, &p, z, r, at, added)); \
    }

// A work-item has up to `each` rows of one channel.
__kernel void conv_direct(CONV_PARAMETERS, long each) {
  const long item = (long)get_global_id(0);
  const long lines = p.out[0] * p.out[1], channels = p.groups * p.out_channels, parts = (lines + each - 1) / each;
  if (item >= p.batch * channels * parts) return;
  const long first_line = item % parts * each, channel = item / parts % channels, image = item / parts / channels;
  x_start += (ulong)(image * p.x_batch + channel / p.out_channels * p.in_channels * p.x_channel);
  w_start += (ulong)(channel * p.w_out);
  const ulong y_plane = y_start + (ulong)(image * p.y_batch + channel * p.y_channel);
  const float added = p.has_bias ? LOAD(D_TYPE)(bias, bias_start + (ulong)(channel * p.bias_stride)) : 0.0f;
  // The outputs that runs give. Every second element is read together with the one behind it.
  long begin = 0, whole_end = 0;
  if (p.x[2] == 1 && p.y[2] == 1 && p.stride[2] <= 2) {
    const long room = p.in[2] + p.padding[2] - (p.taps[2] - 1) * p.dilation[2] - p.stride[2];
    begin = (p.padding[2] + p.stride[2] - 1) / p.stride[2];
    whole_end = room < 0 ? 0 : min(room / p.stride[2] + 1, p.out[2]);
    if (whole_end - begin < 4) begin = whole_end = 0;
  }
  for (long line = first_line; line < min(first_line + each, lines); ++line) {
    const long depth = line / p.out[1], row = line - depth * p.out[1];
    const Taps z = taps_of(&p, 0, depth), r = taps_of(&p, 1, row);
    y_start = y_plane + (ulong)(depth * p.y[0] + row * p.y[1]);
    long whole = begin;
    STORE_RUNS(16)
    STORE_RUNS(8)
    STORE_RUNS(4)
    for (long column = 0; column < p.out[2]; ++column) {
      if (column == begin) column = whole_end;
      if (column < p.out[2])
        STORE(C_TYPE)(y, y_start + (ulong)(column * p.y[2]), conv_one(x, x_start, w, w_start, &p, z, r, column, added));
    }
  }
}

#endif
