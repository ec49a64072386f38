#include "backends/cuda/cutlass/product.cuh"

// Large products with many rows.
XRT_CUTLASS_TILE(256x128, Tile<256, 128, 64, 2, Cooperative>)
