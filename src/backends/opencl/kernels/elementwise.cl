// One work-item for each element of the output, in any layout.

#ifdef B_TYPE
__kernel void add(__global const STORAGE(A_TYPE) * a, ulong a_start, __global const STORAGE(B_TYPE) * b, ulong b_start,
                  __global STORAGE(C_TYPE) * c, ulong c_start, Index index) {
  const long i = (long)get_global_id(0);
  if (i >= index.count) return;
  const Offsets at = offsets_of(index, i);
  STORE(C_TYPE)(c, c_start + at.c, LOAD(A_TYPE)(a, a_start + at.a) + LOAD(B_TYPE)(b, b_start + at.b));
}
#else
__kernel void cast(__global const STORAGE(A_TYPE) * a, ulong a_start, __global STORAGE(C_TYPE) * c, ulong c_start,
                   Index index) {
  const long i = (long)get_global_id(0);
  if (i >= index.count) return;
  const Offsets at = offsets_of(index, i);
  STORE(C_TYPE)(c, c_start + at.c, LOAD(A_TYPE)(a, a_start + at.a));
}
#endif
