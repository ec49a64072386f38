// Puts the parts of a sequence together, in order: of each line the sums, the highest score and the sum of weights.
// One work-item for each element of the output.
__kernel void attention_join(__global const float* partial, ulong partial_start, __global STORAGE(C_TYPE) * out,
                             ulong out_start, __global float* lse, ulong lse_start, Attention p, Tiling t) {
  const long i = (long)get_global_id(0);
  if (i >= p.batch * p.heads * p.queries * p.width) return;
  const long column = i % p.width;
  const long line = i / p.width;
  const long query = line % p.queries;
  const long head = line / p.queries % p.heads;
  const long batch = line / p.queries / p.heads;
  const long stride = t.width + 2;
  partial += partial_start + (ulong)(line * t.parts * stride);
  float highest = -INFINITY;
  for (long part = 0; part < t.parts; ++part) {
    const float here = partial[part * stride + t.width];
    highest = isnan(here) || isnan(highest) ? NAN : fmax(highest, here);
    if (partial[part * stride + t.width + 1] < 0.0f) return;  // found something wrong
  }
  float total = 0.0f;
  float sum = 0.0f;
  for (long part = 0; part < t.parts; ++part) {
    const float here = partial[part * stride + t.width];
    if (here == -INFINITY) continue;
    const float factor = exp(here - highest);
    total += factor * partial[part * stride + t.width + 1];
    sum += factor * partial[part * stride + column];
  }
  STORE(C_TYPE)(out, out_start + (ulong)(batch * p.out[0] + head * p.out[1] + query * p.out[2] + column * p.out[3]),
                total == 0.0f ? 0.0f : sum / total);
  if (p.has_lse && column == 0)
    lse[lse_start + (ulong)(batch * p.lse[0] + head * p.lse[1] + query * p.lse[2])] =
        total == 0.0f ? -INFINITY : highest + log(total);
}
