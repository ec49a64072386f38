// A scale and a shift for each channel, and then x * scale + shift. After vectors.cl.

#define GIVEN(name) __global const void *name, ulong name##_start, int name##_type, long name##_step
#define WRITTEN(name) __global void *name, ulong name##_start, int name##_type, long name##_step

// An item has a channel. `coefficients` is the scales, then the shifts. In training, `moments` is the means, then the
// variances, and the running statistics move on, where they are given; their new values may lie over the old ones.
__kernel void batch_coefficients(GIVEN(old_mean), GIVEN(old_variance), GIVEN(weight), GIVEN(bias), WRITTEN(new_mean),
                                 WRITTEN(new_variance), __global const float* moments, ulong moments_start,
                                 __global float* coefficients, ulong coefficients_start, long channels, int training,
                                 float momentum, float unbiased, float eps) {
  const long c = (long)get_global_id(0);
  if (c >= channels) return;
  const float old_m = load_as(old_mean, old_mean_type, old_mean_start + (ulong)(c * old_mean_step), 0.0f);
  const float old_v =
      load_as(old_variance, old_variance_type, old_variance_start + (ulong)(c * old_variance_step), 1.0f);
  const float mean = training ? moments[moments_start + (ulong)c] : old_m;
  const float variance = training ? moments[moments_start + (ulong)(channels + c)] : old_v;
  const float factor = load_as(weight, weight_type, weight_start + (ulong)(c * weight_step), 1.0f);
  const float scale = 1.0f / sqrt(variance + eps) * factor;
  const float offset = load_as(bias, bias_type, bias_start + (ulong)(c * bias_step), 0.0f);
  coefficients[coefficients_start + (ulong)c] = scale;
  coefficients[coefficients_start + (ulong)(channels + c)] = offset - mean * scale;
  // Of an empty batch there is nothing to take over: NaN times 0 is not 0.
  const float moved_mean = momentum == 0.0f ? old_m : (1.0f - momentum) * old_m + momentum * mean;
  const float moved_variance = momentum == 0.0f ? old_v : (1.0f - momentum) * old_v + momentum * (variance * unbiased);
  store_as(new_mean, new_mean_type, new_mean_start + (ulong)(c * new_mean_step), moved_mean);
  store_as(new_variance, new_variance_type, new_variance_start + (ulong)(c * new_variance_step), moved_variance);
}

enum { slot_x, slot_channel, slot_y };

// An item has up to `each` elements of the last dim of the nest, whose second tensor are the channels' numbers.
__kernel void batch_apply(__global const STORAGE(A_TYPE) * x, ulong x_start, __global void* y, ulong y_start,
                          int y_type, __global const float* coefficients, ulong coefficients_start, long channels,
                          Nest nest, long each) {
  const long run = nest.extent[0];
  const long blocks = (run + each - 1) / each;
  const long item = (long)get_global_id(0);
  if (item >= nest.count / run * blocks) return;
  const long first = item % blocks * each;
  const long count = min(each, run - first);
  const Places start = places_of(nest, item / blocks * run + first);
  const ulong x_step = (ulong)nest.stride[slot_x][0];
  const ulong y_step = (ulong)nest.stride[slot_y][0];
  const ulong channel_step = (ulong)nest.stride[slot_channel][0];
  const ulong x_at = x_start + start.at[slot_x], y_at = y_start + start.at[slot_y];
  __global const float* scales = coefficients + coefficients_start + start.at[slot_channel];
  __global const float* shifts = scales + channels;
  const long whole = x_step == 1 && y_step == 1 ? count / WIDTH * WIDTH : 0;
  if (channel_step == 0) {
    for (long i = 0; i < whole; i += WIDTH)
      stores_as(y, y_type, y_at + (ulong)i, LOADS(A_TYPE)(x, x_at + (ulong)i) * scales[0] + shifts[0]);
  } else {
    for (long i = 0; i < whole; i += WIDTH)
      stores_as(y, y_type, y_at + (ulong)i,
                LOADS(A_TYPE)(x, x_at + (ulong)i) * LOADS(f32)(scales, (ulong)i) + LOADS(f32)(shifts, (ulong)i));
  }
  for (long i = whole; i < count; ++i) {
    const ulong c = (ulong)i * channel_step;
    store_as(y, y_type, y_at + (ulong)i * y_step, LOAD(A_TYPE)(x, x_at + (ulong)i * x_step) * scales[c] + shifts[c]);
  }
}
