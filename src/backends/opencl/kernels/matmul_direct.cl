// One work-item for each element of the output, in any layout: the reference.

__kernel void matmul_direct(__global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b,
                            ulong b_start, __global STORAGE(C_TYPE) * c, ulong c_start, FINISH_PARAMETERS, Product p) {
  const long i = (long)get_global_id(0);
  if (i >= p.count * p.m * p.n) return;
  const long column = i % p.n;
  const long row = i / p.n % p.m;
  const BatchStart at = batch_start(&p, i / p.n / p.m);
  ulong a_at = a_start + at.a + (ulong)(row * p.a.row);
  ulong b_at = b_start + at.b + (ulong)(column * p.b.column);
  float sum = 0.0f;
  for (long step = 0; step < p.k;) {
    const long end = min(step + 1024, p.k);  // as LONG_SUMS elsewhere
    float part = 0.0f;
    for (; step < end; ++step) {
      part += LOAD(A_TYPE)(a, a_at) * LOAD(B_TYPE)(b, b_at);
      a_at += (ulong)p.a.column;
      b_at += (ulong)p.b.row;
    }
    sum += part;
  }
  const ulong d_at = at.d + (ulong)(row * p.d.row + column * p.d.column);
  STORE(C_TYPE)(c, c_start + at.c + (ulong)(row * p.c.row + column * p.c.column),
                finished(sum, row, column, d_at, FINISH_ARGUMENTS));
}
