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
  if (memory != nullptr) forget(on_device(index, [&] { return cudaFree(memory); }));
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
  return to_status(on_device(index, wait), "synchronize");
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

void activate(int index) { check(cudaSetDevice(index), "set_current_device", "cuda:" + std::to_string(index)); }

}  // namespace xpuruntime::cuda
