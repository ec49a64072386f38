#pragma once

#include <optional>
#include <string>

#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// Why a kernel of this name never runs on a device that is here.
struct NeverRuns {
  std::string reason = {};
  bool other_device = false;  // it is a kernel for another type of device: no mistake where one file serves several
};

/// Nothing where the kernel may run. A kernel that is registered is asked about usual problems: it never runs here if
/// it turns all of those down that it would take on a device with everything.
std::optional<NeverRuns> never_runs(const KernelRegistry& registry, Device device, OpId op, const std::string& kernel,
                                    bool deterministic);

/// Whether any kernel of the op takes a usual problem in this dtype and direction here.
bool any_kernel_takes(const KernelRegistry& registry, Device device, OpId op, DataType dtype, Direction direction);

}  // namespace xpuruntime
