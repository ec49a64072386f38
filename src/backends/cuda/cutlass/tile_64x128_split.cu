#include "backends/cuda/cutlass/product.cuh"

// Up to 64 rows and a long k.
XRT_CUTLASS_TILE(64x128_split, Tile<128, 64, 128, 1, Cooperative, true, true>)
