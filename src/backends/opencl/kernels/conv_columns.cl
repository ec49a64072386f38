// Convolutions as products of matrices in memory: the sums go over the taps, the channels fastest. Both matrices lie
// in panels of as many lines as the product wants; one panel of all lines is a matrix of rows along the sums.

// The weights of each group, as f32.
__kernel void weight_panels(__global const STORAGE(A_TYPE) * w, ulong w_start, __global float* panels,
                            ulong panels_start, Conv p, long panel) {
  const long i = (long)get_global_id(0);
  const long depth = p.taps[0] * p.taps[1] * p.taps[2] * p.in_channels;
  if (i >= p.groups * p.out_channels * depth) return;
  const long line = i / depth % p.out_channels;
  const long group = i / depth / p.out_channels;
  const long step = i % depth;
  const Place tap = place_of(p.taps, step / p.in_channels);
  const long padded = (p.out_channels + panel - 1) / panel * panel;
  const long to = group * padded * depth + (line / panel * depth + step) * panel + line % panel;
  panels[panels_start + (ulong)to] =
      LOAD(A_TYPE)(w, w_start + (ulong)((group * p.out_channels + line) * p.w_out + step % p.in_channels * p.w_in +
                                        tap.at[0] * p.w[0] + tap.at[1] * p.w[1] + tap.at[2] * p.w[2]));
}

// The windows of each image and group, as f32: a work-item has one tap of RUN windows side by side, which lie in one
// panel. RUN is 1 where items side by side write side by side, and a panel on CPUs, where one item does.
#ifdef RUN
__kernel void window_panels(__global const STORAGE(A_TYPE) * x, ulong x_start, __global float* panels,
                            ulong panels_start, Conv p, long panel) {
  const long i = (long)get_global_id(0);
  const long pixels = p.out[0] * p.out[1] * p.out[2];
  const long runs = (pixels + RUN - 1) / RUN;
  const long taps = p.taps[0] * p.taps[1] * p.taps[2];
  if (i >= p.batch * p.groups * taps * runs) return;
  const long pixel0 = i % runs * RUN;
  const long tap = i / runs % taps;
  const long group = i / runs / taps % p.groups;
  const long image = i / runs / taps / p.groups;
  const long base = (long)x_start + image * p.x_batch + group * p.in_channels * p.x_channel;
  const Place at = place_of(p.taps, tap);
  Place out = place_of(p.out, pixel0);
  long from[RUN];
  bool run = true;  // in memory too
#pragma unroll
  for (int j = 0; j < RUN; ++j) {
    const long offset = pixel0 + j < pixels ? tap_offset(&p, out.at, at.at) : -1;
    from[j] = offset < 0 ? -1 : base + offset;
    run = run && from[j] == from[0] + j;
    if (++out.at[2] == p.out[2]) {
      out.at[2] = 0;
      if (++out.at[1] == p.out[1]) {
        out.at[1] = 0;
        ++out.at[0];
      }
    }
  }
  run = run && from[0] >= 0;
  const long padded = (pixels + panel - 1) / panel * panel;
  const long depth = taps * p.in_channels;
  __global float* to = panels + panels_start +
                       (ulong)((image * p.groups + group) * padded * depth +
                               (pixel0 / panel * depth + tap * p.in_channels) * panel + pixel0 % panel);
  for (long channel = 0; channel < p.in_channels; ++channel) {
    const ulong shift = (ulong)(channel * p.x_channel);
    if (run) {
#pragma unroll
      for (int j = 0; j < RUN; ++j) to[j] = LOAD(A_TYPE)(x, (ulong)from[0] + shift + (ulong)j);
    } else {
#pragma unroll
      for (int j = 0; j < RUN; ++j) to[j] = from[j] < 0 ? 0.0f : LOAD(A_TYPE)(x, (ulong)from[j] + shift);
    }
    to += panel;
  }
}
#endif
