#pragma once

#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {

/// Memory from the driver. When the device is full, what the pool keeps only for speed goes first, then one more try.
template <class Allocate>
void* allocate_or_trim(WorkspacePool& pool, const Allocate& allocate) {
  try {
    return allocate();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
  }
  pool.trim();
  return allocate();
}

}  // namespace xpuruntime
