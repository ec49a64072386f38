#include "backends/cuda/check.h"

#include "backends/cuda/driver_api.h"

namespace xpuruntime::cuda {

// Those after which, by the runtime's documentation, the process must end to use CUDA again.
bool is_lost(cudaError_t error) {
  switch (static_cast<int>(error)) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorExternalDevice:
    case 226:  // cudaErrorContained and
    case 721:  // cudaErrorTensorMemoryLeak, which older toolkits have no names for
      return true;
    default:
      return false;
  }
}

namespace {

ErrorCode code_of(cudaError_t error) {
  if (error == cudaErrorMemoryAllocation) return ErrorCode::out_of_memory;
  return is_lost(error) ? ErrorCode::device_lost : ErrorCode::device_error;
}

std::string_view advice_for(cudaError_t error) {
  if (is_lost(error)) {
    return "this process has lost the device: start it again, under compute-sanitizer to find the cause";
  }
  switch (error) {
    case cudaErrorMemoryAllocation:
      return "free memory on the device or use smaller tensors";
    case cudaErrorInitializationError:
      return "a child of a process that used CUDA cannot: fork before, or start processes anew";
    case cudaErrorInvalidDevice:
      return "`xrt devices` lists those that are here";
    case cudaErrorNoKernelImageForDevice:
      return "build the backend for this device's compute capability";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
    case cudaErrorStreamCaptureIsolation:
    case cudaErrorStreamCaptureImplicit:
      return "while a graph is recorded, do not wait for the device and use no other stream";
    default:
      return "run the program under compute-sanitizer to find the cause";
  }
}

std::string text_of(cudaError_t error, std::string_view what) {
  std::string text(what);
  text += ": ";
  text += cudaGetErrorString(error);
  text += "; ";
  text += advice_for(error);
  return text;
}

}  // namespace

Status to_status(cudaError_t error, std::string_view what) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();
  return Status(code_of(error), "[cuda] " + text_of(error, what));
}

void check(cudaError_t error, std::string_view function, std::string_view what) {
  if (error == cudaSuccess) return;
  cudaGetLastError();
  fail(code_of(error), function, text_of(error, what));
}

ScopedDevice::ScopedDevice(int index) noexcept {
  if (is_current(index)) return;
  error_ = cudaGetDevice(&previous_);
  if (error_ != cudaSuccess || previous_ == index) return;
  error_ = cudaSetDevice(index);
  changed_ = error_ == cudaSuccess;
}

ScopedDevice::~ScopedDevice() {
  if (changed_) cudaSetDevice(previous_);
}

}  // namespace xpuruntime::cuda
