// One work-item for each element of the output, in any layout: the reference. `index` runs over the output; along its
// columns a does not move, along its rows b does not.

__kernel void matmul_direct(__global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b,
                            ulong b_start, __global STORAGE(C_TYPE) * c, ulong c_start, Index index, long k,
                            long a_stride, long b_stride) {
  const long i = (long)get_global_id(0);
  if (i >= index.count) return;
  const Offsets at = offsets_of(index, i);
  ulong a_at = a_start + at.a;
  ulong b_at = b_start + at.b;
  float sum = 0.0f;
  for (long step = 0; step < k; ++step) {
    sum += LOAD(A_TYPE)(a, a_at) * LOAD(B_TYPE)(b, b_at);
    a_at += (ulong)a_stride;
    b_at += (ulong)b_stride;
  }
  STORE(C_TYPE)(c, c_start + at.c, sum);
}
