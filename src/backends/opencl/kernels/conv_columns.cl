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

// The windows of each image and group, as f32: a work-item has one tap of one window.
__kernel void window_panels(__global const STORAGE(A_TYPE) * x, ulong x_start, __global float* panels,
                            ulong panels_start, Conv p, long panel) {
  const long i = (long)get_global_id(0);
  const long pixels = p.out[0] * p.out[1] * p.out[2];
  const long taps = p.taps[0] * p.taps[1] * p.taps[2];
  if (i >= p.batch * p.groups * taps * pixels) return;
  const long pixel = i % pixels;
  const long tap = i / pixels % taps;
  const long group = i / pixels / taps % p.groups;
  const long image = i / pixels / taps / p.groups;
  const Place out = place_of(p.out, pixel);
  const Place at = place_of(p.taps, tap);
  const long offset = tap_offset(&p, out.at, at.at);
  const long padded = (pixels + panel - 1) / panel * panel;
  const long depth = taps * p.in_channels;
  ulong from = x_start + (ulong)(image * p.x_batch + group * p.in_channels * p.x_channel + max(offset, 0L));
  __global float* to = panels + panels_start +
                       (ulong)((image * p.groups + group) * padded * depth +
                               (pixel / panel * depth + tap * p.in_channels) * panel + pixel % panel);
  for (long channel = 0; channel < p.in_channels; ++channel) {
    *to = offset < 0 ? 0.0f : LOAD(A_TYPE)(x, from);
    from += (ulong)p.x_channel;
    to += panel;
  }
}
