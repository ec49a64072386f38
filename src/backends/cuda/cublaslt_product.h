#pragma once

#include <cublasLt.h>

#include <cstdint>

#include "backends/cuda/launch.h"
#include "xpuruntime/registry/kernel.h"

// NVIDIA's libraries count columns first, we count rows first: a row-major matrix is its own transpose there. So a
// product is handed over as c^T = b^T a^T, or, where the output itself runs down its columns, as c = a b.

namespace xpuruntime::cuda {

struct LibraryTypes {
  cudaDataType_t a = CUDA_R_32F;
  cudaDataType_t b = CUDA_R_32F;
  cudaDataType_t d = CUDA_R_32F;  // and of c
  cudaDataType_t scale = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
};

/// A matrix as the library sees it.
struct LibraryMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t leading = 0;
  std::int64_t batch_stride = 0;
  bool transposed = false;  // it is stored the other way round
};

/// d = alpha * op(a) op(b) + beta * c in the library's own order, and what follows it.
struct LibraryProduct {
  LibraryTypes types = {};
  LibraryMatrix a = {};
  LibraryMatrix b = {};
  LibraryMatrix c = {};
  LibraryMatrix d = {};
  bool swapped = false;  // a is the problem's second input
  std::int64_t k = 0;
  std::int64_t batch_count = 1;
  double alpha = 1;
  double beta = 0;                    // of the third input as c
  bool bias = false;                  // the third input is added to each column of d
  bool relu = false;                  // what is below 0 becomes 0
  bool scaled[2] = {};                // by the problem's fourth and fifth input, one number each,
  bool scaled_by_lines = false;       // or by one for each row and column
  bool finish = false;                // d holds only the sums: the rest is a launch of ours
  bool in_output = true;              // where d is; else in the workspace, in row-major order
  DataType sums = DataType::float32;  // of d

  /// What d takes of the workspace.
  std::uint64_t sums_bytes() const;
};

/// alpha or beta in the type that the library reads it in.
struct LibraryScalar {
  explicit LibraryScalar(double value)
      : f64(value), f32(static_cast<float>(value)), i32(static_cast<std::int32_t>(value)) {}
  const void* as(cudaDataType_t type) const {
    if (type == CUDA_R_64F) return &f64;
    return type == CUDA_R_32I ? static_cast<const void*>(&i32) : &f32;
  }

  double f64;
  float f32;
  std::int32_t i32;
};

/// What the libraries may take for themselves.
inline constexpr std::uint64_t most_library_workspace = std::uint64_t{32} << 20;
/// Their workspace begins on 256 bytes, the one that plans get on 64: so much is lost at most.
inline constexpr std::uint64_t workspace_shift = 192;
void* align_library_workspace(void* address);

/// A problem of matmul or linear as a product of the library, or why it is none.
struct LibraryAnswer {
  Verdict verdict = {};
  LibraryProduct product = {};
};
LibraryAnswer library_product(const Problem& problem, const DeviceProfile& profile);
/// The same with the sums alone by the library and all else by us: for what it has no algorithm for.
LibraryAnswer library_sums(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::cuda
