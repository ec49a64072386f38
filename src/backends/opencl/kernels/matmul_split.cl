// The second launch of a product whose sums were split: the parts of each sum lie in the workspace, one product after
// the other, and are added in order.

__kernel void sum_parts(__global const float* partial, ulong partial_start, __global STORAGE(C_TYPE) * c,
                        ulong c_start, FINISH_PARAMETERS, Product p, long parts) {
  const long i = (long)get_global_id(0);
  const long count = p.count * p.m * p.n;
  if (i >= count) return;
  const long column = i % p.n;
  const long row = i / p.n % p.m;
  const BatchStart at = batch_start(&p, i / p.n / p.m);
  float sum = 0.0f;
  for (long part = 0; part < parts; ++part) sum += partial[partial_start + (ulong)(part * count + i)];
  const ulong d_at = at.d + (ulong)(row * p.d.row + column * p.d.column);
  STORE(C_TYPE)(c, c_start + at.c + (ulong)(row * p.c.row + column * p.c.column),
                finished(sum, row, column, d_at, FINISH_ARGUMENTS));
}
