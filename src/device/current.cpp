#include "xpuruntime/device/current.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// Streams of the first devices of each type stand in a plain array: reading one neither allocates nor registers a
// destructor, so it is safe in destructors that run while a thread ends. Only a machine with more devices needs a map.
constexpr std::size_t fast_indices = 8;
constinit thread_local std::array<std::array<Stream, fast_indices>, max_device_types> fast_streams = {};
constinit thread_local Device thread_device = {};

std::map<Device, Stream>& further_streams() {
  thread_local std::map<Device, Stream> streams;
  return streams;
}

constinit std::array<std::atomic<const VendorRuntime*>, max_device_types> runtimes = {};

std::size_t type_slot(DeviceType type, const char* function) {
  const auto slot = static_cast<std::size_t>(type);
  if (slot >= max_device_types) {
    fail(ErrorCode::invalid_argument, function,
         "device type number " + std::to_string(slot) + " does not exist; use one of the enum's or a registered one");
  }
  return slot;
}

const VendorRuntime& runtime_of(DeviceType type, const char* function) {
  static constexpr VendorRuntime none = {};
  const VendorRuntime* runtime = runtimes[type_slot(type, function)].load(std::memory_order_acquire);
  return runtime == nullptr ? none : *runtime;
}

int vendors_current(DeviceType type) {
  const VendorRuntime& runtime = runtime_of(type, "DeviceGuard");
  return runtime.active == nullptr ? -1 : runtime.active();
}

}  // namespace

Device current_device() { return thread_device; }

void set_current_device(Device device) {
  const auto activate = runtime_of(device.type, "set_current_device").activate;
  if (activate != nullptr) activate(device.index);
  thread_device = device;
}

Stream current_stream(Device device) {
  const std::size_t slot = type_slot(device.type, "current_stream");
  if (device.index < fast_indices) return fast_streams[slot][device.index];
  const auto& streams = further_streams();
  const auto found = streams.find(device);
  return found == streams.end() ? Stream{} : found->second;
}

void set_current_stream(Device device, Stream stream) {
  const std::size_t slot = type_slot(device.type, "set_current_stream");
  if (stream.handle != nullptr && stream.id == 0) {
    const auto id_of = runtime_of(device.type, "set_current_stream").stream_id;
    if (id_of != nullptr) stream.id = id_of(device.index, stream.handle);
  }
  if (device.index < fast_indices) {
    fast_streams[slot][device.index] = stream;
  } else {
    further_streams()[device] = stream;
  }
}

// Where the vendor's runtime can say what it has, that counts, not our note: others set it too.
DeviceGuard::DeviceGuard(Device device)
    : device_(device), previous_(current_device()), vendors_previous_(vendors_current(device.type)) {
  const bool there = vendors_previous_ < 0 ? device == previous_ : device.index == vendors_previous_;
  if (!there) set_current_device(device);
  thread_device = device;
}

DeviceGuard::~DeviceGuard() {
  try {
    if (vendors_previous_ < 0) {
      if (previous_ != current_device()) set_current_device(previous_);
    } else {
      if (vendors_current(device_.type) != vendors_previous_)
        runtime_of(device_.type, "DeviceGuard").activate(vendors_previous_);
      thread_device = previous_;
    }
  } catch (...) {
    // A destructor cannot throw. The note still names the device that is really active, so the next guard for the
    // old one asks the vendor's runtime again and shows the error there.
  }
}

StreamGuard::StreamGuard(Device device, Stream stream) : device_(device), previous_(current_stream(device)) {
  set_current_stream(device, stream);
}

StreamGuard::~StreamGuard() {
  // Cannot throw: the constructor made the entry, and entries are never erased.
  set_current_stream(device_, previous_);
}

void set_vendor_runtime(DeviceType type, const VendorRuntime* runtime) {
  runtimes[type_slot(type, "set_vendor_runtime")].store(runtime, std::memory_order_release);
}

}  // namespace xpuruntime
