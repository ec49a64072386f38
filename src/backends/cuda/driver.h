#pragma once

#include <array>
#include <string>
#include <vector>

#include "backends/cuda/faults.h"
#include "core/lazily.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::cuda {

/// The devices, or why there is none.
struct Probe {
  std::vector<DeviceProfile> devices = {};
  std::string why_absent = {};
};
/// Starts CUDA, which a process that forks afterwards cannot use in its children.
Probe probe_devices();
/// Whether the system has a driver for NVIDIA's devices, as far as files tell: CUDA is not started.
bool has_driver();

/// The NVIDIA GPUs of this machine through the CUDA runtime.
///
/// The null Stream is CUDA's legacy default stream: work on it is ordered with all other code of the process that uses
/// the default stream. Streams made here are non-blocking: they are not ordered with it.
/// Every call leaves the calling thread's current CUDA device as it was.
///
/// Captures begun here are relaxed: memory may be allocated meanwhile. What would break one, by waiting for its stream
/// or for the whole device, is refused, and memory that is freed goes when it has ended.
class CudaDriver final : public DeviceDriver {
 public:
  CudaDriver();

  DeviceType type() const override { return DeviceType::nvidia; }
  const std::vector<DeviceProfile>& devices() const override { return probed().devices; }
  std::string why_absent() const override { return probed().why_absent; }

  void* allocate(int index, std::size_t bytes) override;
  /// Waits for the device, so no queued work loses its memory.
  void deallocate(int index, void* memory) noexcept override;

  void* allocate_ordered(int index, std::size_t bytes, Stream stream) override;
  void deallocate_ordered(int index, void* memory, Stream stream) noexcept override;

  Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream stream) override;
  Status write_value(int index, void* memory, const void* value, std::size_t bytes, Stream stream) override;
  Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream stream) override;

  Stream create_stream(int index) override;
  void destroy_stream(int index, Stream stream) noexcept override;
  Status synchronize(int index, Stream stream) override;
  Status wait(int index) override;

  std::uint64_t stream_id(int index, void* handle) override;
  std::uint64_t capture_id(int index, Stream stream) override;
  void keep_with_graph(int index, Stream stream, std::shared_ptr<void> held) override;
  void begin_capture(int index, Stream stream) override;
  DeviceGraph end_capture(int index, Stream stream) override;
  Status launch_graph(int index, DeviceGraph graph, Stream stream) override;
  void destroy_graph(int index, DeviceGraph graph) noexcept override;

  Event create_event(int index) override;
  void destroy_event(int index, Event event) noexcept override;
  Status record_event(int index, Event& event, Stream stream) override;
  Status wait_event(int index, Event event) override;
  Status queue_wait(int index, Stream stream, Event event) override;
  bool event_done(int index, Event event) override;
  double elapsed_us(int index, Event from, Event to) override;
  Status flush_caches(int index, void* memory, std::size_t bytes, Stream stream) override;
  bool asynchronous() const override { return true; }
  std::unique_ptr<ValueFault> make_value_fault(int index, std::string message) override;

 private:
  struct Ended;
  struct KeptWithGraph;
  static void end_of_graph(void* kept);
  void release_ended();
  std::vector<void*> take_late_frees(int index);
  void free_later(int index, void* memory) noexcept;
  bool has_captures(int index);
  Status wait_for(int index, Stream stream);
  /// Refuses to wait where that would break a capture.
  Status check_wait(int index, Stream stream, bool whole_device);

  const Probe& probed() const { return probe_.get(&probe_devices); }

  Lazily<Probe> probe_;  // looking for GPUs starts CUDA: not before one is asked for
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
  std::shared_ptr<Ended> ended_;  // what graphs kept that are destroyed
  struct Captured {
    int captures = 0;               // begun here and not ended
    std::vector<void*> late_frees;  // that came during one
  };
  Mutex mutex_;
  std::array<Captured, 256> captured_ = {};  // by device
};

/// The runtime's own notes of each thread.
extern const VendorRuntime vendor_runtime;

}  // namespace xpuruntime::cuda
