#pragma once

// OpenCL 1.2 is what every vendor ships; nothing newer is called. The name is the standard's.
// NOLINTNEXTLINE(readability-identifier-naming)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <string>

// Nothing links the ICD loader: it is opened when a device is first asked for.

namespace xpuruntime::opencl {

/// The functions of OpenCL under their own names, found before the header's in this namespace. Null until load_opencl
/// has answered that all is well.
// NOLINTBEGIN(readability-identifier-naming)
#define XRT_CL(name) inline decltype(&::name) name = nullptr;
#include "backends/opencl/cl_functions.inc"
#undef XRT_CL
// NOLINTEND(readability-identifier-naming)

/// Opens the loader, once; empty, or what is missing and what to install. Some loaders start every vendor's driver
/// here.
std::string load_opencl(const char* file = "libOpenCL.so.1");

}  // namespace xpuruntime::opencl
