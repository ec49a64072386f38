#include "backends/cuda/cutlass/product.cuh"

// Few tiles and a long k: some hundred rows.
XRT_CUTLASS_TILE(128x256_split, Tile<128, 256, 64, 1, Cooperative, true>)
