// A work-group computes a tile of the output's pixels for CHANNELS channels of one group, an item one pixel of it.
// What lies under the tile, halo included, comes to local memory, some input channels at a time.

// As in conv_tiled.cpp.
typedef struct {
  long tile[2];     // pixels: height, width; a group has as many items
  long patch[2];    // what lies under them
  long together;    // input channels in local memory
} Tiling;

__kernel void conv_tiled(__global const STORAGE(A_TYPE) * x, ulong x_start, __global const STORAGE(B_TYPE) * w,
                         ulong w_start, __global const STORAGE(D_TYPE) * bias, ulong bias_start,
                         __global STORAGE(C_TYPE) * y, ulong y_start, Conv p, Tiling t, __local float* patch,
                         __local float* filters) {
  const int item = (int)get_local_id(0);
  const int items = (int)get_local_size(0);
  const long across = (p.out[2] + t.tile[1] - 1) / t.tile[1];
  const long down = (p.out[1] + t.tile[0] - 1) / t.tile[0];
  const long slices = (p.out_channels + CHANNELS - 1) / CHANNELS;
  long group_id = (long)get_group_id(0);
  const long column0 = group_id % across * t.tile[1];
  group_id /= across;
  const long row0 = group_id % down * t.tile[0];
  group_id /= down;
  const long first = group_id % slices * CHANNELS;
  group_id /= slices;
  const long group = group_id % p.groups;
  const long image = group_id / p.groups;
  const int channels = (int)min(p.out_channels - first, (long)CHANNELS);
  x_start += (ulong)(image * p.x_batch + group * p.in_channels * p.x_channel);
  w_start += (ulong)((group * p.out_channels + first) * p.w_out);
  const int height = (int)t.patch[0];
  const int width = (int)t.patch[1];
  const int taps = (int)(p.taps[1] * p.taps[2]);
  const int item_row = item / (int)t.tile[1];
  const int item_column = item % (int)t.tile[1];

  float sum[CHANNELS];
#pragma unroll
  for (int i = 0; i < CHANNELS; ++i) sum[i] = 0.0f;
  for (long in0 = 0; in0 < p.in_channels; in0 += t.together) {
    const int together = (int)min(t.together, p.in_channels - in0);
    for (int e = item; e < together * height * width; e += items) {
      const long row = row0 * p.stride[1] - p.padding[1] + e / width % height;
      const long column = column0 * p.stride[2] - p.padding[2] + e % width;
      const bool inside = row >= 0 && row < p.in[1] && column >= 0 && column < p.in[2];
      const long channel = in0 + e / width / height;
      patch[e] = inside ? LOAD(A_TYPE)(x, x_start + (ulong)(channel * p.x_channel + row * p.x[1] + column * p.x[2]))
                        : 0.0f;
    }
    // Channels past the last have zeros: their sums are not stored.
    for (int e = item; e < together * taps * CHANNELS; e += items) {
      const int out = e % CHANNELS;
      const int tap = e / CHANNELS % taps;
      const long channel = in0 + e / CHANNELS / taps;
      filters[e] = out < channels ? LOAD(B_TYPE)(w, w_start + (ulong)(out * p.w_out + channel * p.w_in +
                                                                      tap / p.taps[2] * p.w[1] +
                                                                      tap % p.taps[2] * p.w[2]))
                                  : 0.0f;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int channel = 0; channel < together; ++channel)
      for (int row = 0; row < (int)p.taps[1]; ++row)
        for (int column = 0; column < (int)p.taps[2]; ++column) {
          const int under = (channel * height + item_row * (int)p.stride[1] + row * (int)p.dilation[1]) * width +
                            item_column * (int)p.stride[2] + column * (int)p.dilation[2];
          const float value = patch[under];
          __local const float* filter = filters + (channel * taps + row * (int)p.taps[2] + column) * CHANNELS;
#pragma unroll
          for (int i = 0; i < CHANNELS; ++i) sum[i] += value * filter[i];
        }
    barrier(CLK_LOCAL_MEM_FENCE);
  }

  const long row = row0 + item_row;
  const long column = column0 + item_column;
  if (row < p.out[1] && column < p.out[2]) {
#pragma unroll
    for (int i = 0; i < CHANNELS; ++i) {
      if (i < channels) {
        const long channel = group * p.out_channels + first + i;
        const float added = p.has_bias ? LOAD(D_TYPE)(bias, bias_start + (ulong)(channel * p.bias_stride)) : 0.0f;
        STORE(C_TYPE)(y, y_start + (ulong)(image * p.y_batch + channel * p.y_channel + row * p.y[1] +
                                           column * p.y[2]), sum[i] + added);
      }
    }
  }
}
