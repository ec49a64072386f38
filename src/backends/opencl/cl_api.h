#pragma once

// OpenCL 1.2 is what every vendor ships; nothing newer is called. The name is the standard's.
// NOLINTNEXTLINE(readability-identifier-naming)
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>

#include "xpuruntime/core/error.h"

namespace xpuruntime::opencl {

/// Drops one reference of any OpenCL object. What queued work still uses lives on: OpenCL keeps it.
struct Release {
  void operator()(cl_context object) const { clReleaseContext(object); }
  void operator()(cl_command_queue object) const { clReleaseCommandQueue(object); }
  void operator()(cl_program object) const { clReleaseProgram(object); }
  void operator()(cl_kernel object) const { clReleaseKernel(object); }
};
using Context = std::unique_ptr<std::remove_pointer_t<cl_context>, Release>;
using Queue = std::unique_ptr<std::remove_pointer_t<cl_command_queue>, Release>;
using Program = std::unique_ptr<std::remove_pointer_t<cl_program>, Release>;
using KernelHandle = std::unique_ptr<std::remove_pointer_t<cl_kernel>, Release>;

/// "CL_OUT_OF_RESOURCES (-5)"; "error -1234" for codes that the standard does not name.
std::string error_name(cl_int code);

/// out_of_memory for the codes that mean it, else device_error.
ErrorCode error_code_of(cl_int code);

/// Success, or what `call` returned in words.
Status to_status(cl_int code, std::string_view call);

/// Throws what to_status would say.
void check(cl_int code, std::string_view function, std::string_view call);

/// Tells a queue from a later one at the same address (Stream::id). One that was asked about lives until nobody else
/// holds it and the next new one is asked about.
std::uint64_t queue_id(cl_command_queue queue);

}  // namespace xpuruntime::opencl
