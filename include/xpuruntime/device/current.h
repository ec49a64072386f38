#pragma once

#include "xpuruntime/core/device.h"
#include "xpuruntime/device/stream.h"

namespace xpuruntime {

/// The calling thread's current device: what the vendor's own functions work on, and where commands place problem texts
/// that name none. A call runs on its tensors' device, never on this one.
Device current_device();

/// Makes `device` current for this thread, also in the vendor's runtime. An error leaves the old one in place.
void set_current_device(Device device);

/// The stream that this thread's calls on `device` are queued on; null is the device's default.
Stream current_stream(Device device);
/// A stream that comes as a bare handle gets its id here.
void set_current_stream(Device device, Stream stream);

/// Makes a device current for a block and brings the old one back, also on exceptions.
/// What the vendor's runtime had before comes back too, for callers who set that themselves.
class DeviceGuard {
 public:
  explicit DeviceGuard(Device device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  Device device_;
  Device previous_;
  int vendors_previous_;  // -1: its vendor's runtime cannot say
};

/// Makes a stream current on a device for a block.
class StreamGuard {
 public:
  StreamGuard(Device device, Stream stream);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

 private:
  Device device_;
  Stream previous_;
};

/// What a vendor's runtime keeps for each thread. A null function is the default: nothing beyond our own note.
struct VendorRuntime {
  void (*activate)(int index) = nullptr;                          // cudaSetDevice; may throw
  int (*active)() = nullptr;                                      // cudaGetDevice
  std::uint64_t (*stream_id)(int index, void* handle) = nullptr;  // DeviceDriver::stream_id; may throw
};
/// Backends set it when they are opened; it must live as long as the process. Null: the default again.
void set_vendor_runtime(DeviceType type, const VendorRuntime* runtime);

}  // namespace xpuruntime
