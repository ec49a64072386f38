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
constexpr std::size_t fast_indices = 16;
constinit thread_local std::array<std::array<Stream, fast_indices>, device_type_count> fast_streams = {};
constinit thread_local Device thread_device = {};

std::map<Device, Stream>& further_streams() {
  thread_local std::map<Device, Stream> streams;
  return streams;
}

constinit std::array<std::atomic<ActivateDevice>, device_type_count> activations = {};

std::size_t type_slot(DeviceType type, const char* function) {
  const auto slot = static_cast<std::size_t>(type);
  if (slot >= device_type_count) {
    fail(ErrorCode::invalid_argument, function,
         "device type number " + std::to_string(slot) + " does not exist; use one of the DeviceType names");
  }
  return slot;
}

}  // namespace

Device current_device() { return thread_device; }

void set_current_device(Device device) {
  const auto activate = activations[type_slot(device.type, "set_current_device")].load(std::memory_order_acquire);
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
  if (device.index < fast_indices) {
    fast_streams[slot][device.index] = stream;
  } else {
    further_streams()[device] = stream;
  }
}

DeviceGuard::DeviceGuard(Device device) : previous_(current_device()) {
  if (device != previous_) set_current_device(device);
}

DeviceGuard::~DeviceGuard() {
  if (previous_ == current_device()) return;
  try {
    set_current_device(previous_);
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

void set_activation(DeviceType type, ActivateDevice activate) {
  activations[type_slot(type, "set_activation")].store(activate, std::memory_order_release);
}

}  // namespace xpuruntime
