#include "backends/cuda/cutlass/product.cuh"

// Few rows, or small products.
XRT_CUTLASS_TILE(64x128, Tile<64, 128, 64, 1, PingPong>)
