#pragma once

#include <cstdint>

#include "xpuruntime/core/device.h"

namespace xpuruntime {

/// Where work is queued: a `cudaStream_t`, a `cl_command_queue`, or null for the device's default (the CPU has no
/// other). Not owned: who made it destroys it.
struct Stream {
  void* handle = nullptr;
  /// Tells it from a later stream that got the same handle: no other stream of the process has it. 0 where handles are
  /// never used again, and for the device's default. DeviceManager::stream and set_current_stream fill it in.
  std::uint64_t id = 0;

  bool operator==(const Stream&) const = default;
};

/// A point in a stream: a `cudaEvent_t`, a `cl_event`; null on the CPU, where work is done when the call returns.
struct Event {
  void* handle = nullptr;
};

/// Work that was recorded on a stream and can be launched again and again: a `cudaGraphExec_t`.
struct DeviceGraph {
  void* handle = nullptr;
};

}  // namespace xpuruntime
