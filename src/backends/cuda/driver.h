#pragma once

#include <string>
#include <vector>

#include "backends/cuda/faults.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/device/driver.h"

namespace xpuruntime::cuda {

/// The NVIDIA GPUs of this machine through the CUDA runtime.
///
/// The null Stream is CUDA's legacy default stream: work on it is ordered with all other code of the process that uses
/// the default stream. Streams made here are non-blocking: they are not ordered with it.
/// Every call leaves the calling thread's current CUDA device as it was.
class CudaDriver final : public DeviceDriver {
 public:
  CudaDriver();

  DeviceType type() const override { return DeviceType::nvidia; }
  const std::vector<DeviceProfile>& devices() const override { return devices_; }
  std::string why_absent() const override { return why_absent_; }

  void* allocate(int index, std::size_t bytes) override;
  /// Waits for the device, so no queued work loses its memory.
  void deallocate(int index, void* memory) noexcept override;

  void* allocate_ordered(int index, std::size_t bytes, Stream stream) override;
  void deallocate_ordered(int index, void* memory, Stream stream) noexcept override;

  Status copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host, std::size_t bytes,
                        Stream stream) override;
  Status copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                      Stream stream) override;

  Stream create_stream(int index) override;
  void destroy_stream(int index, Stream stream) noexcept override;
  Status synchronize(int index, Stream stream) override;

  std::uint64_t stream_id(int index, void* handle) override;
  bool capturing(int index, Stream stream) override;

  Event create_event(int index) override;
  void destroy_event(int index, Event event) noexcept override;
  Status record_event(int index, Event& event, Stream stream) override;
  Status wait_event(int index, Event event) override;
  Status queue_wait(int index, Stream stream, Event event) override;
  bool event_done(int index, Event event) override;
  double elapsed_us(int index, Event from, Event to) override;
  bool asynchronous() const override { return true; }
  std::unique_ptr<ValueFault> make_value_fault(int index, std::string message) override;

 private:
  std::vector<DeviceProfile> devices_;
  std::string why_absent_;
  std::shared_ptr<Faults> faults_ = std::make_shared<Faults>();
};

/// What was found at start: the devices, or why there is none.
struct Probe {
  std::vector<DeviceProfile> devices = {};
  std::string why_absent = {};
};
Probe probe_devices();

/// The runtime's own notes of each thread.
extern const VendorRuntime vendor_runtime;

}  // namespace xpuruntime::cuda
