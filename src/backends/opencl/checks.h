#pragma once

#include <initializer_list>
#include <string>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::opencl {

/// Why a kernel turns a problem down; empty if it does not.
using Check = std::string (*)(const Problem&, const DeviceProfile&);

/// The first check that turns the problem down gives the reason that is shown.
Verdict verdict_of(const Problem& problem, const DeviceProfile& profile, std::initializer_list<Check> checks);

// The vocabulary of refusals that several kernels share.
std::string only_stored_floats(const Problem& problem, const DeviceProfile& profile);
std::string only_contiguous(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::opencl
