// Adds up pairs of losses and weights, a part of them by each team. After vectors.cl.

#define ADD_UP(a, b) ((a) + (b))
TEAM_FOLD(team_sum, float2, ADD_UP)

// The sum's loss over `divisor`, or over its weight where that is 0; the pair itself where it goes to `sums`.
__kernel void loss_total(__global const float* pairs, ulong pairs_start, long count, long part_length, __global void* y,
                         ulong y_start, int y_type, __global float* sums, ulong sums_start,
                         float divisor TEAM_PARAM(float2)) {
  TEAM_PLACE(part)
  const long end = min((part + 1) * part_length, count);
  float2 sum[4] = {(float2)(0.0f), (float2)(0.0f), (float2)(0.0f), (float2)(0.0f)};
  long i = part * part_length + lane;
  for (; i + 3 * lanes < end; i += 4 * lanes) {
#pragma unroll
    for (int k = 0; k < 4; ++k) sum[k] += vload2((ulong)(i + k * lanes), pairs + pairs_start);
  }
  for (; i < end; i += lanes) sum[0] += vload2((ulong)i, pairs + pairs_start);
  const float2 whole = team_sum((sum[0] + sum[1]) + (sum[2] + sum[3]) TEAM);
  if (lane != 0 || part * part_length >= max(count, 1L)) return;
  if (y_type == type_none)
    vstore2(whole, (ulong)part, sums + sums_start);
  else
    store_as(y, y_type, y_start, whole.x / (divisor == 0.0f ? whole.y : divisor));
}
