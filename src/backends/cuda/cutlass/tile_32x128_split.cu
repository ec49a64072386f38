#include "backends/cuda/cutlass/product.cuh"

// Up to 32 rows and a long k.
XRT_CUTLASS_TILE(32x128_split, Tile<128, 32, 128, 1, Cooperative, true, true>)
