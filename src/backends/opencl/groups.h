#pragma once

#include <cstdint>
#include <string>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

// What the kernels ask of a device before they choose a work-group.

/// Work-items of a CPU device run one after the other: local memory and wide groups cost there and gain nothing.
bool is_cpu(const DeviceProfile& profile);

/// Tells the sources that it is one, for the loads and stores that are fast there: " -D CPU_DEVICE".
inline std::string cpu_option(const DeviceProfile& profile) { return is_cpu(profile) ? " -D CPU_DEVICE" : ""; }
/// Tells the sources that every result is rounded to 16 bits, on devices that have fast functions for that.
std::string narrow_option(const Problem& problem, const DeviceProfile& profile);

/// The largest work-group of one dimension.
std::int64_t largest_group(const DeviceProfile& profile);

Verdict has_work_groups(const DeviceProfile& profile, std::int64_t items);
Verdict has_local_memory(const DeviceProfile& profile, std::uint64_t bytes);

constexpr std::int64_t divided_up(std::int64_t extent, std::int64_t part) { return (extent + part - 1) / part; }

}  // namespace xpuruntime::opencl
