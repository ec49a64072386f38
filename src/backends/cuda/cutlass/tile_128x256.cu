#include "backends/cuda/cutlass/product.cuh"

// Large products.
XRT_CUTLASS_TILE(128x256, Tile<128, 256, 64, 2, Cooperative>)
