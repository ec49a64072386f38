// For GPUs, few queries: bound by reading keys and values, which go to registers where they lie. LANES items share a
// key, each with every LANESth vector of it, and SLOTS keys are read at a time, UNROLL times over. The items of a slot
// keep a running softmax of its keys; at the end the slots are joined.

#define SLOTS (GROUP / LANES)
#define DV (DEPTH / LANES / 4)
#define WV (WIDTH / LANES / 4)
#define KEYS (SLOTS * UNROLL)
#define SCORES (ROWS * UNROLL)    // of a slot
#define DOT_LINE (GROUP / 4 + 1)  // an odd number of vectors: lines begin in other banks

__kernel __attribute__((reqd_work_group_size(GROUP, 1, 1))) void attention_few(ATTENTION_PARAMETERS, Tiling t,
                                                                               __global float* partial,
                                                                               ulong partial_start) {
  __local float4 dots[SCORES * DOT_LINE];  // of the items that share a key
  __local float scores[SLOTS * SCORES];
  __local int sees[ROWS];
  __local float4 sums[SLOTS * (WIDTH / 4)];
  __local float tops[SLOTS];
  __local float totals[SLOTS];
  __local int wrong;

  const int item = (int)get_local_id(0);
  const int slot = item / LANES;
  const int lane = item % LANES;
  const Share share = share_of(&p, &t, ROWS, lengths, lengths_start);
  k_start += (ulong)(share.key_head * p.k[1]);
  v_start += (ulong)(share.key_head * p.v[1]);
  if (item == 0) wrong = share.length < 0;

  int most = 0;  // keys that any of the queries sees
  float4 query[ROWS][DV];
  float4 sum[ROWS][WV];
  float highest[ROWS];
  float total[ROWS];
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    const int row = min(share.row0 + i, share.rows - 1);  // past the last: that one again, not stored
    const int visible = sees_of(&p, &share, row % share.queries);
    if (item == 0) sees[i] = visible;
    most = max(most, visible);
#pragma unroll
    for (int j = 0; j < DV; ++j)
      query[i][j] = four_queries(&p, q, q_start, place_of(&share, row), (lane + j * LANES) * 4);
#pragma unroll
    for (int j = 0; j < WV; ++j) sum[i][j] = (float4)(0.0f);
    highest[i] = -INFINITY;
    total[i] = 0.0f;
  }
  const int first = share.part * (int)t.keys_per_part;
  const int end = (int)min((long)most, first + t.keys_per_part);
  barrier(CLK_LOCAL_MEM_FENCE);  // `wrong` is set

  for (int key0 = first; key0 < end; key0 += KEYS) {
    float4 keys[UNROLL][DV];
    float4 values[UNROLL][WV];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
      const int key = min(key0 + u * SLOTS + slot, end - 1);  // past the last: that one again, takes no part
      const ulong k_at = k_start + line_at(&p, p.k, table, table_start, share.batch, key, &wrong);
      const ulong v_at = v_start + line_at(&p, p.v, table, table_start, share.batch, key, &wrong);
#pragma unroll
      for (int j = 0; j < DV; ++j) keys[u][j] = FOUR_KEYS(k_at, (lane + j * LANES) * 4);
#pragma unroll
      for (int j = 0; j < WV; ++j) values[u][j] = FOUR_VALUES(v_at, (lane + j * LANES) * 4);
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u)
#pragma unroll
      for (int i = 0; i < ROWS; ++i) {
        float4 dot4 = query[i][0] * keys[u][0];
#pragma unroll
        for (int j = 1; j < DV; ++j) dot4 += query[i][j] * keys[u][j];
        ((__local float*)dots)[(i * UNROLL + u) * (DOT_LINE * 4) + item] = (dot4.x + dot4.y) + (dot4.z + dot4.w);
      }
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int n = lane; n < SCORES; n += LANES) {
      const int row = n / UNROLL;
      const int key = key0 + n % UNROLL * SLOTS + slot;
      float score = -INFINITY;
      if (key < min(sees[row], end)) {
        float4 parts = dots[n * DOT_LINE + slot * (LANES / 4)];
#pragma unroll
        for (int j = 1; j < LANES / 4; ++j) parts += dots[n * DOT_LINE + slot * (LANES / 4) + j];
        score = (parts.x + parts.y) + (parts.z + parts.w);
        if (p.mask_kind != 0)
          score = masked_at(&p, mask, mask_start, &share, min(share.row0 + row, share.rows - 1), key, score);
      }
      scores[slot * SCORES + n] = score;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll
    for (int i = 0; i < ROWS; ++i) {
      float score[UNROLL];
      float now = highest[i];
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        score[u] = scores[slot * SCORES + i * UNROLL + u];
        now = fmax(now, score[u]);
      }
      const float factor = highest[i] == -INFINITY ? 1.0f : power(highest[i] - now);
      const float above = now == -INFINITY ? 0.0f : now;
      total[i] *= factor;
#pragma unroll
      for (int j = 0; j < WV; ++j) sum[i][j] *= factor;
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) {
        const float weight = power(score[u] - above);
        total[i] += weight;
        // A key that takes no part adds nothing, whatever its value.
        if (weight != 0.0f) {
#pragma unroll
          for (int j = 0; j < WV; ++j) sum[i][j] += weight * values[u][j];
        }
      }
      highest[i] = now;
    }
  }

  barrier(CLK_LOCAL_MEM_FENCE);
  if (wrong) *fault = 1;
#pragma unroll
  for (int i = 0; i < ROWS; ++i) {
    if (lane == 0) {
      tops[slot] = isnan(total[i]) ? NAN : highest[i];
      totals[slot] = total[i];
    }
#pragma unroll
    for (int j = 0; j < WV; ++j) sums[slot * (WIDTH / 4) + lane + j * LANES] = sum[i][j];
    barrier(CLK_LOCAL_MEM_FENCE);
    float top = -INFINITY;
    for (int s = 0; s < SLOTS; ++s) top = fmax(top, tops[s]);
    float whole = 0.0f;
    for (int s = 0; s < SLOTS; ++s)
      if (tops[s] != -INFINITY) whole += power(tops[s] - top) * totals[s];
    const Place at = place_of(&share, share.row0 + i);
    if (share.row0 + i < share.rows) {
      for (int column = item; column < WIDTH / 4; column += GROUP) {
        float4 joined = (float4)(0.0f);
        for (int s = 0; s < SLOTS; ++s)
          if (tops[s] != -INFINITY) joined += power(tops[s] - top) * sums[s * (WIDTH / 4) + column];
        put_sums(&p, &t, out, out_start, partial, partial_start, at, column * 4, joined, whole, wrong);
      }
      if (item == 0) put_total(&p, &t, lse, lse_start, partial, partial_start, at, top, whole, wrong);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
