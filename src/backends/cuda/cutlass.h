#pragma once

#include <cstdint>
#include <vector>

#include "backends/cuda/launch.h"

namespace xpuruntime::cuda {

struct CutlassConfiguration;

/// Where a matrix is, in elements: its contiguous lines, and its batches.
struct CutlassMatrix {
  std::int64_t leading = 0;
  std::int64_t batch = 0;
};

/// activation(alpha * a @ b + beta * c + bias), rounded once. Inputs and output are of one 16-bit dtype, sums are
/// float32 in a fixed order. c or the bias is the third input.
struct CutlassLaunch {
  const CutlassConfiguration* configuration = nullptr;
  int m = 0;
  int n = 0;
  int k = 0;
  int batches = 1;
  CutlassMatrix a = {};  // rows are contiguous
  CutlassMatrix b = {};
  CutlassMatrix c = {};
  CutlassMatrix d = {};
  bool along_k = false;  // b's columns are contiguous, else its rows
  DataType dtype = DataType::bfloat16;
  float alpha = 1;
  float beta = 0;
  bool bias = false;
  Activation activation = Activation::none;
  int split = 1;  // blocks that share the k of a tile; 0: all blocks get equal shares of all k (stream-K)
  int units = 0;  // multiprocessors
};
cudaError_t launch(const CutlassLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Kernels of one tile and dtype for both layouts of b. Each tile is a file of the folder cutlass, compiled once for
/// each dtype.
struct CutlassConfiguration {
  DataType dtype = DataType::bfloat16;
  int m = 0;  // of the tile: rows and columns of the output
  int n = 0;
  int k = 0;        // of one step
  int cluster = 1;  // blocks that share what they read of b
  const char* schedule = "";
  bool splits = false;  // takes other splits than 1
  std::uint64_t (*workspace_bytes)(const CutlassLaunch&) = nullptr;
  cudaError_t (*prepare)(const CutlassLaunch&) = nullptr;  // once for each device
  cudaError_t (*launch)(const CutlassLaunch&, const Pointers&, cudaStream_t) = nullptr;
};

/// None where this build has no CUTLASS.
std::vector<const CutlassConfiguration*> cutlass_configurations();

}  // namespace xpuruntime::cuda
