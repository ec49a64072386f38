#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "backends/opencl/cl_loader.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::opencl {

/// Whether OpenCL was started before this process was forked: its drivers hang or crash here.
bool broken_by_fork();

/// Drops one reference of any OpenCL object. What queued work still uses lives on: OpenCL keeps it.
struct Release {
  void operator()(cl_context object) const { drop(clReleaseContext, object); }
  void operator()(cl_command_queue object) const { drop(clReleaseCommandQueue, object); }
  void operator()(cl_program object) const { drop(clReleaseProgram, object); }
  void operator()(cl_kernel object) const { drop(clReleaseKernel, object); }
  void operator()(cl_mem object) const { drop(clReleaseMemObject, object); }
  void operator()(cl_event object) const { drop(clReleaseEvent, object); }

 private:
  template <class Object>
  static void drop(cl_int (*release)(Object), Object object) {
    if (object != nullptr && !broken_by_fork()) release(object);
  }
};
using Context = std::unique_ptr<std::remove_pointer_t<cl_context>, Release>;
using Queue = std::unique_ptr<std::remove_pointer_t<cl_command_queue>, Release>;
using Program = std::unique_ptr<std::remove_pointer_t<cl_program>, Release>;
using Buffer = std::unique_ptr<std::remove_pointer_t<cl_mem>, Release>;
using KernelHandle = std::unique_ptr<std::remove_pointer_t<cl_kernel>, Release>;

/// "CL_OUT_OF_RESOURCES (-5)"; "error -1234" for codes that the standard does not name.
std::string error_name(cl_int code);

/// out_of_memory for the codes that mean it, device_lost where the device is gone, invalid_argument for a queue of
/// another context; else device_error.
ErrorCode error_code_of(cl_int code);

/// device_lost where broken_by_fork().
Status usable_here();

/// To be asked before the first call of OpenCL: the same, and starts it here.
Status start_here();

/// Success, or what `call` returned in words.
Status to_status(cl_int code, std::string_view call);

/// The same of a wait for queued work, whose errors are those of the work: CL_OUT_OF_RESOURCES is what drivers give for
/// a kernel that went wrong.
Status to_status_of_work(cl_int code, std::string_view call);

/// Throws what to_status would say.
void check(cl_int code, std::string_view function, std::string_view call);

/// Tells a queue from a later one at the same address (Stream::id). One that was asked about lives until nothing else
/// holds it and the next new one is asked about. A queue that runs its work out of order is an invalid argument.
std::uint64_t queue_id(cl_command_queue queue);

/// Those of a context that were asked about and are still alive.
std::vector<Queue> queues_of(cl_context context);

}  // namespace xpuruntime::opencl
