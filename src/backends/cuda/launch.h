#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/matmul_shape.h"
#include "xpuruntime/core/data_type.h"

// What crosses from the C++ side of the backend, which decides, to the CUDA side, which launches: plain data.

namespace xpuruntime::cuda {

struct Pointers {
  const void* inputs[2] = {};
  void* output = nullptr;
};

/// One thread per output element, any strides, summed in float64.
struct ReferenceLaunch {
  MatmulShape shape = {};
  DataType a = DataType::float32;
  DataType b = DataType::float32;
  DataType c = DataType::float32;
};
cudaError_t launch(const ReferenceLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Which way the skinny product goes through b.
enum class SkinnyPath : std::uint8_t {
  tensor_cores,  // b's columns are contiguous along k, 16-bit floats: fragments straight from memory
  dots,          // b's columns are contiguous along k: warps share a column
  columns,       // b's rows are contiguous along n: each thread owns columns and walks k
};

/// A product with few rows. Sums are float32 in a fixed order.
struct SkinnyLaunch {
  int m = 0;
  int n = 0;
  int k = 0;
  MatrixStrides a = {};
  MatrixStrides b = {};
  MatrixStrides c = {};
  DataType dtype = DataType::float32;
  DataType output = DataType::float32;
  SkinnyPath path = SkinnyPath::dots;
  bool vector = false;    // 16-byte loads
  int rows = 1;           // rows of a per block: 1, 2, 4 or 8; tensor cores take all 8 or 16
  int warps = 8;          // per block
  int warps_per_dot = 1;  // dots: how many share a column
  int lanes = 32;         // columns: threads side by side
};
cudaError_t launch(const SkinnyLaunch& launch, const Pointers& pointers, cudaStream_t stream);

/// Elementwise work over up to eight dims. Strides are those of the first input, the second and the output.
struct ElementwiseShape {
  int rank = 0;
  std::int64_t extent[8] = {};
  std::int64_t strides[3][8] = {};
  std::int64_t count = 0;
  bool contiguous = false;  // all alike, aligned to 16 bytes
};

struct AddLaunch {
  ElementwiseShape shape = {};
  DataType dtype = DataType::float32;
};
cudaError_t launch(const AddLaunch& launch, const Pointers& pointers, cudaStream_t stream);

struct CastLaunch {
  ElementwiseShape shape = {};
  DataType from = DataType::float32;
  DataType to = DataType::float32;
};
cudaError_t launch(const CastLaunch& launch, const Pointers& pointers, cudaStream_t stream);

}  // namespace xpuruntime::cuda
