#include "backends/cuda/driver.h"

#include <algorithm>

#include "backends/cuda/check.h"

namespace xpuruntime::cuda {
namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t native(Event event) { return static_cast<cudaEvent_t>(event.handle); }

/// Runs `call` with the device current; the first error of either.
template <class Call>
cudaError_t on_device(int index, Call&& call) {
  const ScopedDevice scope(index);
  return scope.error() != cudaSuccess ? scope.error() : call();
}

/// For calls that cannot report: a failure must not show up in somebody else's cudaGetLastError.
void forget(cudaError_t error) {
  if (error != cudaSuccess) cudaGetLastError();
}

Status copy(int index, void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, Stream stream) {
  if (bytes == 0) return {};
  const cudaError_t error = on_device(index, [&] {
    const cudaError_t queued = cudaMemcpyAsync(to, from, bytes, kind, native(stream));
    // Also for pageable memory: what that may return early from is not ours to rely on.
    return queued != cudaSuccess ? queued : cudaStreamSynchronize(native(stream));
  });
  return to_status(error, "copy of " + std::to_string(bytes) + " bytes");
}

}  // namespace

CudaDriver::CudaDriver() {
  Probe probe = probe_devices();
  devices_ = std::move(probe.devices);
  why_absent_ = std::move(probe.why_absent);
}

void* CudaDriver::allocate(int index, std::size_t bytes) {
  void* memory = nullptr;
  const cudaError_t error = on_device(index, [&] { return cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)); });
  check(error, "allocate", std::to_string(bytes) + " bytes on cuda:" + std::to_string(index));
  return memory;
}

void CudaDriver::deallocate(int index, void* memory) noexcept {
  if (memory == nullptr) return;
  // cudaFree waits by itself, but not for memory that came from cudaMallocAsync.
  forget(on_device(index, [&] {
    cudaDeviceSynchronize();
    return cudaFree(memory);
  }));
}

void* CudaDriver::allocate_ordered(int index, std::size_t bytes, Stream stream) {
  void* memory = nullptr;
  const cudaError_t error =
      on_device(index, [&] { return cudaMallocAsync(&memory, std::max<std::size_t>(bytes, 1), native(stream)); });
  if (error == cudaErrorNotSupported) {
    forget(error);
    return allocate(index, bytes);
  }
  check(error, "allocate", std::to_string(bytes) + " bytes on cuda:" + std::to_string(index));
  return memory;
}

void CudaDriver::deallocate_ordered(int index, void* memory, Stream stream) noexcept {
  if (memory == nullptr) return;
  const cudaError_t error = on_device(index, [&] { return cudaFreeAsync(memory, native(stream)); });
  forget(error);
  if (error != cudaSuccess) deallocate(index, memory);  // as where allocate_ordered had to
}

Status CudaDriver::copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                                  Stream stream) {
  return copy(index, static_cast<std::byte*>(memory) + byte_offset, host, bytes, cudaMemcpyHostToDevice, stream);
}

Status CudaDriver::copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                                Stream stream) {
  return copy(index, host, static_cast<const std::byte*>(memory) + byte_offset, bytes, cudaMemcpyDeviceToHost, stream);
}

Stream CudaDriver::create_stream(int index) {
  cudaStream_t stream = nullptr;
  check(on_device(index, [&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }), "create_stream",
        "no stream on cuda:" + std::to_string(index));
  return {stream};
}

void CudaDriver::destroy_stream(int index, Stream stream) noexcept {
  // Work that is still queued finishes first; only the handle goes now.
  if (stream.handle != nullptr) forget(on_device(index, [&] { return cudaStreamDestroy(native(stream)); }));
}

Status CudaDriver::synchronize(int index, Stream stream) {
  // Streams made elsewhere are not ours to list, so waiting for everything means waiting for the device.
  const auto wait = [&] { return stream.handle ? cudaStreamSynchronize(native(stream)) : cudaDeviceSynchronize(); };
  const Status status = to_status(on_device(index, wait), "synchronize");
  return status.ok() ? faults_->take(index) : status;
}

std::uint64_t CudaDriver::stream_id(int index, void* handle) { return vendor_runtime.stream_id(index, handle); }

bool CudaDriver::capturing(int index, Stream stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  const cudaError_t error = on_device(index, [&] { return cudaStreamIsCapturing(native(stream), &status); });
  forget(error);
  // The default stream may not even be asked while another is captured.
  return error == cudaErrorStreamCaptureImplicit || status != cudaStreamCaptureStatusNone;
}

Event CudaDriver::create_event(int index) {
  cudaEvent_t event = nullptr;
  check(on_device(index, [&] { return cudaEventCreate(&event); }), "create_event",
        "no event on cuda:" + std::to_string(index));
  return {event};
}

void CudaDriver::destroy_event(int index, Event event) noexcept {
  if (event.handle != nullptr) forget(on_device(index, [&] { return cudaEventDestroy(native(event)); }));
}

Status CudaDriver::record_event(int index, Event& event, Stream stream) {
  return to_status(on_device(index, [&] { return cudaEventRecord(native(event), native(stream)); }), "record_event");
}

Status CudaDriver::wait_event(int index, Event event) {
  return to_status(on_device(index, [&] { return cudaEventSynchronize(native(event)); }), "wait_event");
}

Status CudaDriver::queue_wait(int index, Stream stream, Event event) {
  return to_status(on_device(index, [&] { return cudaStreamWaitEvent(native(stream), native(event), 0); }),
                   "queue_wait");
}

bool CudaDriver::event_done(int index, Event event) {
  const cudaError_t error = on_device(index, [&] { return cudaEventQuery(native(event)); });
  forget(error);
  // Failed work will not go on: who waits for it is released, and the next synchronize shows the error.
  return error != cudaErrorNotReady;
}

double CudaDriver::elapsed_us(int index, Event from, Event to) {
  float milliseconds = 0;
  const cudaError_t error =
      on_device(index, [&] { return cudaEventElapsedTime(&milliseconds, native(from), native(to)); });
  forget(error);
  return error == cudaSuccess ? static_cast<double>(milliseconds) * 1000.0 : -1.0;
}

std::unique_ptr<ValueFault> CudaDriver::make_value_fault(int index, std::string message) {
  return faults_->make(faults_, index, std::move(message));
}

const VendorRuntime vendor_runtime = {
    .activate = [](int index) { check(cudaSetDevice(index), "set_current_device", "cuda:" + std::to_string(index)); },
    .active =
        [] {
          int index = -1;
          forget(cudaGetDevice(&index));
          return index;
        },
    .stream_id =
        [](int index, void* handle) {
          unsigned long long id = 0;
          check(on_device(index, [&] { return cudaStreamGetId(static_cast<cudaStream_t>(handle), &id); }), "stream",
                "no such stream on cuda:" + std::to_string(index));
          return static_cast<std::uint64_t>(id);
        },
};

}  // namespace xpuruntime::cuda
