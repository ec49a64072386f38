#include "backends/cuda/cutlass/product.cuh"

// The same with half as wide tiles.
XRT_CUTLASS_TILE(128x128_split, Tile<128, 128, 64, 1, Cooperative, true>)
