#include "backends/cuda/driver.h"

#include <algorithm>
#include <utility>

#include "backends/cuda/check.h"
#include "backends/cuda/driver_api.h"
#include "backends/cuda/memory.h"

namespace xpuruntime::cuda {
namespace {

cudaStream_t native(Stream stream) { return static_cast<cudaStream_t>(stream.handle); }
cudaEvent_t native(Event event) { return static_cast<cudaEvent_t>(event.handle); }
cudaGraphExec_t native(DeviceGraph graph) { return static_cast<cudaGraphExec_t>(graph.handle); }

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

/// Lets this thread allocate for a block while somebody's stream is captured, in whatever mode.
class RelaxedCapture {
 public:
  RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~RelaxedCapture() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// What nearly every call finds; false also where only the runtime can tell. The default streams are the device's.
bool is_not_captured(int index, cudaStream_t stream) {
  const bool is_default = stream == nullptr || stream == cudaStreamLegacy || stream == cudaStreamPerThread;
  if (is_default ? !is_current(index) : driver_api() == nullptr) return false;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
  return driver_api()->is_capturing(stream, &status) == CUDA_SUCCESS && status == CU_STREAM_CAPTURE_STATUS_NONE;
}

/// 0: nothing is captured there.
std::uint64_t number_of_capture(int index, cudaStream_t stream) {
  if (is_not_captured(index, stream)) return 0;
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  unsigned long long id = 0;
  const cudaError_t error = on_device(index, [&] { return cudaStreamGetCaptureInfo(stream, &status, &id); });
  forget(error);
  // The default stream may not even be asked while another is captured. A broken capture has no number.
  const bool unnamed = error == cudaErrorStreamCaptureImplicit || (status != cudaStreamCaptureStatusNone && id == 0);
  if (unnamed) return ~std::uint64_t{0};
  return status == cudaStreamCaptureStatusNone ? 0 : id;
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

/// What was asked for; where that is too much, what is there as well.
std::string bytes_asked(int index, std::size_t bytes, cudaError_t error) {
  const std::string text = std::to_string(bytes) + " bytes on cuda:" + std::to_string(index);
  if (error != cudaErrorMemoryAllocation) return text;
  std::size_t free = 0, total = 0;
  const RelaxedCapture relaxed;
  const cudaError_t asked = on_device(index, [&] { return cudaMemGetInfo(&free, &total); });
  forget(asked);
  if (asked != cudaSuccess) return text;
  return text + ", where " + std::to_string(free) + " of " + std::to_string(total) + " bytes are free";
}

}  // namespace

/// Filled by CUDA's own threads, which may not call CUDA: emptied by calls of the driver.
struct CudaDriver::Ended {
  Mutex mutex;
  std::vector<std::shared_ptr<void>> held;
};

struct CudaDriver::KeptWithGraph {
  std::shared_ptr<Ended> ended;
  std::shared_ptr<void> held;
};

CudaDriver::CudaDriver() : ended_(std::make_shared<Ended>()) {}

void* CudaDriver::allocate(int index, std::size_t bytes) {
  void* memory = nullptr;
  const RelaxedCapture relaxed;
  const cudaError_t error = on_device(index, [&] { return cudaMalloc(&memory, std::max<std::size_t>(bytes, 1)); });
  check(error, "allocate", bytes_asked(index, bytes, error));
  return memory;
}

void CudaDriver::deallocate(int index, void* memory) noexcept {
  if (memory == nullptr) return;
  const Stream current = current_stream({DeviceType::nvidia, static_cast<std::uint8_t>(index)});
  if (!check_wait(index, current, /*whole_device=*/true).ok()) return free_later(index, memory);
  release_ended();
  // cudaFree waits by itself, but not for memory that came from cudaMallocAsync.
  forget(on_device(index, [&] {
    cudaDeviceSynchronize();
    for (void* const late : take_late_frees(index)) cudaFree(late);
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
  check(error, "allocate", bytes_asked(index, bytes, error));
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
  if (Status status = check_wait(index, stream, /*whole_device=*/false); !status.ok()) return status;
  return copy(index, static_cast<std::byte*>(memory) + byte_offset, host, bytes, cudaMemcpyHostToDevice, stream);
}

Status CudaDriver::write_value(int index, void* memory, const void* value, std::size_t bytes, Stream stream) {
  const cudaError_t error = on_device(index, [&] { return cuda::write_value(memory, value, bytes, native(stream)); });
  return to_status(error, "write of " + std::to_string(bytes) + " bytes");
}

Status CudaDriver::copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                                Stream stream) {
  if (Status status = check_wait(index, stream, /*whole_device=*/false); !status.ok()) return status;
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

bool CudaDriver::has_captures(int index) {
  const std::lock_guard lock(mutex_);
  return captured_[static_cast<std::size_t>(index)].captures > 0;
}

Status CudaDriver::check_wait(int index, Stream stream, bool whole_device) {
  if (!capturing(index, stream) && !(whole_device && has_captures(index))) return {};
  return Status(
      ErrorCode::not_supported,
      "a graph is being recorded on cuda:" + std::to_string(index) +
          ", and waiting would break the recording; copy and wait before or after, and pass numbers as tensors");
}

Status CudaDriver::synchronize(int index, Stream stream) {
  const Status status = wait_for(index, stream);
  return status.ok() ? faults_->take(index) : status;
}

Status CudaDriver::wait(int index) { return wait_for(index, {}); }

Status CudaDriver::wait_for(int index, Stream stream) {
  if (Status status = check_wait(index, stream, stream.handle == nullptr); !status.ok()) return status;
  release_ended();
  // Streams made elsewhere are not ours to list, so waiting for everything means waiting for the device.
  const auto wait = [&] { return stream.handle ? cudaStreamSynchronize(native(stream)) : cudaDeviceSynchronize(); };
  return to_status(on_device(index, wait), "synchronize");
}

std::uint64_t CudaDriver::stream_id(int index, void* handle) { return vendor_runtime.stream_id(index, handle); }

std::uint64_t CudaDriver::capture_id(int index, Stream stream) { return number_of_capture(index, native(stream)); }

void CudaDriver::end_of_graph(void* data) {
  const std::unique_ptr<KeptWithGraph> kept(static_cast<KeptWithGraph*>(data));
  const std::lock_guard lock(kept->ended->mutex);
  kept->ended->held.push_back(std::move(kept->held));
}

void CudaDriver::release_ended() {
  std::vector<std::shared_ptr<void>> held;
  const std::lock_guard lock(ended_->mutex);
  held.swap(ended_->held);
}

void CudaDriver::keep_with_graph(int index, Stream stream, std::shared_ptr<void> held) {
  auto kept = std::make_unique<KeptWithGraph>(KeptWithGraph{ended_, std::move(held)});
  const cudaError_t error = on_device(index, [&] {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    cudaGraph_t graph = nullptr;
    cudaError_t step = cudaStreamGetCaptureInfo(native(stream), &status, nullptr, &graph);
    if (step != cudaSuccess) return step;
    if (graph == nullptr) return cudaErrorStreamCaptureInvalidated;
    cudaUserObject_t object = nullptr;
    step = cudaUserObjectCreate(&object, kept.get(), &end_of_graph, 1, cudaUserObjectNoDestructorSync);
    if (step != cudaSuccess) return step;
    static_cast<void>(kept.release());  // end_of_graph has it now
    step = cudaGraphRetainUserObject(graph, object, 1, cudaGraphUserObjectMove);
    if (step != cudaSuccess) cudaUserObjectRelease(object, 1);
    return step;
  });
  check(error, "keep_with_graph", "the recording on cuda:" + std::to_string(index));
}

void CudaDriver::begin_capture(int index, Stream stream) {
  release_ended();
  check(on_device(index, [&] { return cudaStreamBeginCapture(native(stream), cudaStreamCaptureModeRelaxed); }),
        "begin_capture", "cuda:" + std::to_string(index));
  const std::lock_guard lock(mutex_);
  ++captured_[static_cast<std::size_t>(index)].captures;
}

DeviceGraph CudaDriver::end_capture(int index, Stream stream) {
  cudaGraphExec_t ready = nullptr;
  const cudaError_t error = on_device(index, [&] {
    cudaGraph_t graph = nullptr;
    const cudaError_t ended = cudaStreamEndCapture(native(stream), &graph);
    if (ended != cudaSuccess) return ended;
    const cudaError_t made = cudaGraphInstantiate(&ready, graph, 0);
    forget(cudaGraphDestroy(graph));
    return made;
  });
  {
    const std::lock_guard lock(mutex_);
    --captured_[static_cast<std::size_t>(index)].captures;
  }
  for (void* const late : take_late_frees(index)) deallocate(index, late);
  check(error, "end_capture", "the recording on cuda:" + std::to_string(index));
  return {ready};
}

std::vector<void*> CudaDriver::take_late_frees(int index) {
  const std::lock_guard lock(mutex_);
  return std::exchange(captured_[static_cast<std::size_t>(index)].late_frees, {});
}

void CudaDriver::free_later(int index, void* memory) noexcept {
  const std::lock_guard lock(mutex_);
  try {
    captured_[static_cast<std::size_t>(index)].late_frees.push_back(memory);
  } catch (...) {
    // No host memory for the note: lost, which breaks less than a wait.
  }
}

Status CudaDriver::launch_graph(int index, DeviceGraph graph, Stream stream) {
  return to_status(on_device(index, [&] { return cudaGraphLaunch(native(graph), native(stream)); }), "launch_graph");
}

void CudaDriver::destroy_graph(int index, DeviceGraph graph) noexcept {
  if (graph.handle != nullptr) forget(on_device(index, [&] { return cudaGraphExecDestroy(native(graph)); }));
  release_ended();
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

Status CudaDriver::flush_caches(int index, void* memory, std::size_t bytes, Stream stream) {
  return to_status(on_device(index, [&] { return cuda::flush_caches(memory, bytes, native(stream)); }), "flush_caches");
}

std::unique_ptr<ValueFault> CudaDriver::make_value_fault(int index, std::string message) {
  return faults_->make(faults_, index, std::move(message));
}

const VendorRuntime vendor_runtime = {
    .activate = [](int index) { check(cudaSetDevice(index), "set_current_device", "cuda:" + std::to_string(index)); },
    .active =
        [] {
          int index = -1;
          if (!current_device(index)) forget(cudaGetDevice(&index));
          return index;
        },
    .stream_id =
        [](int index, void* handle) {
          // A capture of PyTorch's breaks where its stream is asked for its number: the capture's own stands for it.
          constexpr std::uint64_t of_a_capture = std::uint64_t{1} << 63;
          const std::uint64_t capture = number_of_capture(index, static_cast<cudaStream_t>(handle));
          if (capture != 0) return capture | of_a_capture;
          unsigned long long id = 0;
          check(on_device(index, [&] { return cudaStreamGetId(static_cast<cudaStream_t>(handle), &id); }), "stream",
                "no such stream on cuda:" + std::to_string(index));
          return static_cast<std::uint64_t>(id);
        },
};

}  // namespace xpuruntime::cuda
