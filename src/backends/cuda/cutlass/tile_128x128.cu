#include "backends/cuda/cutlass/product.cuh"

// Products of some hundred tiles.
XRT_CUTLASS_TILE(128x128, Tile<128, 128, 64, 2, PingPong>)
