// A work-item has RUN neighbours along a row of the output: any layout, any groups. RUN is 1 where items side by side
// read what lies side by side, and more on CPUs, where one item does.

__kernel void conv_direct(__global const STORAGE(A_TYPE) * x, ulong x_start, __global const STORAGE(B_TYPE) * w,
                          ulong w_start, __global const STORAGE(D_TYPE) * bias, ulong bias_start,
                          __global STORAGE(C_TYPE) * y, ulong y_start, Conv p) {
  const long i = (long)get_global_id(0);
  const long runs = (p.out[2] + RUN - 1) / RUN;
  const long lines = p.out[0] * p.out[1];
  const long channels = p.groups * p.out_channels;
  if (i >= p.batch * channels * lines * runs) return;
  const long column0 = i % runs * RUN;
  const long line = i / runs % lines;
  const long channel = i / runs / lines % channels;
  const long image = i / runs / lines / channels;
  const int columns = (int)min(p.out[2] - column0, (long)RUN);
  x_start += (ulong)(image * p.x_batch + channel / p.out_channels * p.in_channels * p.x_channel);
  w_start += (ulong)(channel * p.w_out);
  const long out[3] = {line / p.out[1], line % p.out[1], column0};
  const float added = p.has_bias ? LOAD(D_TYPE)(bias, bias_start + (ulong)(channel * p.bias_stride)) : 0.0f;
  float sum[RUN];
#pragma unroll
  for (int j = 0; j < RUN; ++j) sum[j] = added;
  long tap[3];
  for (tap[0] = 0; tap[0] < p.taps[0]; ++tap[0]) {
    const long depth = out[0] * p.stride[0] + tap[0] * p.dilation[0] - p.padding[0];
    if (depth < 0 || depth >= p.in[0]) continue;
    for (tap[1] = 0; tap[1] < p.taps[1]; ++tap[1]) {
      const long row = out[1] * p.stride[1] + tap[1] * p.dilation[1] - p.padding[1];
      if (row < 0 || row >= p.in[1]) continue;
      for (tap[2] = 0; tap[2] < p.taps[2]; ++tap[2]) {
        const long first = column0 * p.stride[2] + tap[2] * p.dilation[2] - p.padding[2];
        const bool inside = columns == RUN && first >= 0 && first + (RUN - 1) * p.stride[2] < p.in[2];
        const long step = p.stride[2] * p.x[2];
        ulong x_at = x_start + (ulong)(depth * p.x[0] + row * p.x[1] + first * p.x[2]);
        ulong w_at = w_start + (ulong)(tap[0] * p.w[0] + tap[1] * p.w[1] + tap[2] * p.w[2]);
        for (long in = 0; in < p.in_channels; ++in) {
          const float weight = LOAD(B_TYPE)(w, w_at);
          if (inside && step == 1) {
#pragma unroll
            for (int j = 0; j < RUN; ++j) sum[j] += LOAD(A_TYPE)(x, x_at + (ulong)j) * weight;
          } else {
#pragma unroll
            for (int j = 0; j < RUN; ++j) {
              const long at = first + j * p.stride[2];
              if (j < columns && at >= 0 && at < p.in[2])
                sum[j] += LOAD(A_TYPE)(x, x_at + (ulong)(j * step)) * weight;
            }
          }
          x_at += (ulong)p.x_channel;
          w_at += (ulong)p.w_in;
        }
      }
    }
  }
  y_start += (ulong)(image * p.y_batch + channel * p.y_channel + out[0] * p.y[0] + out[1] * p.y[1]);
#pragma unroll
  for (int j = 0; j < RUN; ++j)
    if (j < columns) STORE(C_TYPE)(y, y_start + (ulong)((column0 + j) * p.y[2]), sum[j]);
}
