#pragma once

#include <cstdint>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/device_manager.h"

namespace xpuruntime::native {

/// Memory of the host for results: a result that nobody has any more is written over by a later run, so that its pages
/// are not asked of the system anew. It keeps up to 64 MiB of them, of results from 64 KiB to 32 MiB; others are new.
/// Safe for many threads.
class OutputPool {
 public:
  Tensor take(const TensorSpec& spec, const DeviceManager& devices, Device device);

 private:
  Mutex mutex_ = {};
  std::vector<Tensor> kept_ = {};  // the one that was used longest ago first; many may still have owners
  std::uint64_t bytes_ = 0;
};

}  // namespace xpuruntime::native
