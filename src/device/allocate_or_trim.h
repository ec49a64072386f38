#pragma once

#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {

/// Memory from the driver. When the device is full, what the pool keeps only for speed goes first, then one more try.
inline void* allocate_or_trim(DeviceDriver& driver, int index, std::size_t bytes, WorkspacePool& pool) {
  try {
    return driver.allocate(index, bytes);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  pool.trim();
  return driver.allocate(index, bytes);
}

}  // namespace xpuruntime
