#pragma once

#include <cublasLt.h>

#include <string>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime::cuda {

/// The functions of cuBLASLt that we call, looked up at run time: the library is large and not on every machine.
struct CublasLt {
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtGetVersion) get_version = nullptr;
  decltype(&cublasLtGetStatusString) status_string = nullptr;
  decltype(&cublasLtMatmulDescCreate) desc_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) desc_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) desc_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatrixLayoutSetAttribute) layout_set = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) config_get = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
};

/// Null where no cuBLASLt of a known version is installed. Opened on the first call.
const CublasLt* cublaslt();

/// "13.1.0"; empty where there is no library.
std::string cublaslt_version();

/// The process's handle for a device, made on first use with that device current. Throws Error.
cublasLtHandle_t cublaslt_handle(int device);

/// The same of classic cuBLAS.
struct Cublas {
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasGetProperty) property = nullptr;
  decltype(&cublasGetStatusString) status_string = nullptr;
  decltype(&cublasSetMathMode) set_math_mode = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSetWorkspace_v2) set_workspace = nullptr;
  decltype(&cublasGemmStridedBatchedEx_64) multiply = nullptr;
};
const Cublas* cublas();
std::string cublas_version();

/// Stream and workspace belong to the handle: a call holds the lock until its work is queued.
struct CublasHandle {
  explicit CublasHandle(cublasHandle_t made) : handle(made) {}

  cublasHandle_t handle;
  Mutex mutex;
};
CublasHandle& cublas_handle(int device);

/// "algo=66 tile=64x32 stages=64x4 splitk=1 ...": names, where the header has them, rather than numbers.
std::string describe(const CublasLt& api, const cublasLtMatmulAlgo_t& algorithm);

}  // namespace xpuruntime::cuda
