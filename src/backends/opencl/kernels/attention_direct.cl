// One work-item for each query: any layout and size. The scores are computed again for every COLUMNS columns of the
// output rather than kept.

#define COLUMNS 64

float score_of(const Attention* p, __global const STORAGE(A_TYPE) * q, ulong q_at, __global const STORAGE(B_TYPE) * k,
               ulong k_at) {
  float sum = 0.0f;
  for (long d = 0; d < p->depth; ++d)
    sum += LOAD(A_TYPE)(q, q_at + (ulong)(d * p->q[3])) * LOAD(B_TYPE)(k, k_at + (ulong)(d * p->k[3]));
  return sum * p->scale;
}

__kernel void attention_direct(ATTENTION_PARAMETERS) {
  const long i = (long)get_global_id(0);
  if (i >= p.batch * p.heads * p.queries) return;
  const long query = i % p.queries;
  const long head = i / p.queries % p.heads;
  const long batch = i / p.queries / p.heads;
  const long key_head = head / (p.heads / p.key_heads);
  const long length = sequence_length(&p, lengths, lengths_start, batch);
  if (length < 0) {
    *fault = 1;
    return;
  }
  const long keys = visible_keys(&p, query, length);
  q_start += (ulong)(batch * p.q[0] + head * p.q[1] + query * p.q[2]);
  k_start += (ulong)(key_head * p.k[1]);
  v_start += (ulong)(key_head * p.v[1]);
  mask_start += (ulong)(batch * p.mask[0] + head * p.mask[1] + query * p.mask[2]);
  out_start += (ulong)(batch * p.out[0] + head * p.out[1] + query * p.out[2]);

  float highest = -INFINITY;
  for (long key = 0; key < keys; ++key) {
    const long home = home_of(&p, table, table_start, batch, key);
    if (home < 0) {
      *fault = 1;
      return;
    }
    const float score = score_of(&p, q, q_start, k, k_start + (ulong)(home * p.k[0] + row_of(&p, key) * p.k[2]));
    const float whole = masked(&p, mask, mask_start + (ulong)(key * p.mask[3]), score);
    highest = isnan(whole) ? whole : fmax(highest, whole);
    if (isnan(highest)) break;
  }

  float weights = 0.0f;
  for (long column0 = 0; column0 == 0 || column0 < p.width; column0 += COLUMNS) {
    const int columns = (int)min(p.width - column0, (long)COLUMNS);
    float sum[COLUMNS];
    for (int j = 0; j < columns; ++j) sum[j] = 0.0f;
    weights = 0.0f;
    for (long key = 0; key < keys; ++key) {
      const long home = home_of(&p, table, table_start, batch, key);
      const float score = score_of(&p, q, q_start, k, k_start + (ulong)(home * p.k[0] + row_of(&p, key) * p.k[2]));
      const float whole = masked(&p, mask, mask_start + (ulong)(key * p.mask[3]), score);
      if (whole == -INFINITY) continue;
      const float weight = exp(whole - highest);
      weights += weight;
      ulong v_at = v_start + (ulong)(home * p.v[0] + row_of(&p, key) * p.v[2] + column0 * p.v[3]);
      for (int j = 0; j < columns; ++j) sum[j] += weight * LOAD(V_TYPE)(v, v_at + (ulong)(j * p.v[3]));
    }
    for (int j = 0; j < columns; ++j)
      STORE(C_TYPE)(out, out_start + (ulong)((column0 + j) * p.out[3]), weights == 0.0f ? 0.0f : sum[j] / weights);
  }
  if (p.has_lse)
    lse[lse_start + (ulong)(batch * p.lse[0] + head * p.lse[1] + query * p.lse[2])] =
        weights == 0.0f ? -INFINITY : highest + log(weights);
}
