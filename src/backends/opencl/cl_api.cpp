#include "backends/opencl/cl_api.h"

#include <vector>

#include "core/fork_guard.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::opencl {
namespace {

struct NamedCode {
  cl_int code;
  std::string_view name;
};

constexpr NamedCode named_codes[] = {
    {-1, "CL_DEVICE_NOT_FOUND"},
    {-2, "CL_DEVICE_NOT_AVAILABLE"},
    {-3, "CL_COMPILER_NOT_AVAILABLE"},
    {-4, "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
    {-5, "CL_OUT_OF_RESOURCES"},
    {-6, "CL_OUT_OF_HOST_MEMORY"},
    {-7, "CL_PROFILING_INFO_NOT_AVAILABLE"},
    {-11, "CL_BUILD_PROGRAM_FAILURE"},
    {-14, "CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST"},
    {-30, "CL_INVALID_VALUE"},
    {-33, "CL_INVALID_DEVICE"},
    {-34, "CL_INVALID_CONTEXT"},
    {-36, "CL_INVALID_COMMAND_QUEUE"},
    {-38, "CL_INVALID_MEM_OBJECT"},
    {-43, "CL_INVALID_BUILD_OPTIONS"},
    {-44, "CL_INVALID_PROGRAM"},
    {-45, "CL_INVALID_PROGRAM_EXECUTABLE"},
    {-46, "CL_INVALID_KERNEL_NAME"},
    {-48, "CL_INVALID_KERNEL"},
    {-49, "CL_INVALID_ARG_INDEX"},
    {-50, "CL_INVALID_ARG_VALUE"},
    {-51, "CL_INVALID_ARG_SIZE"},
    {-52, "CL_INVALID_KERNEL_ARGS"},
    {-54, "CL_INVALID_WORK_GROUP_SIZE"},
    {-55, "CL_INVALID_WORK_ITEM_SIZE"},
    {-58, "CL_INVALID_EVENT"},
    {-59, "CL_INVALID_OPERATION"},
    {-61, "CL_INVALID_BUFFER_SIZE"},
    {-63, "CL_INVALID_GLOBAL_WORK_SIZE"},
    {-1001, "CL_PLATFORM_NOT_FOUND_KHR"},
};

std::string describe(cl_int code, std::string_view call) {
  const std::string_view advice = error_code_of(code) == ErrorCode::out_of_memory
                                      ? "free device memory or make the problem smaller"
                                      : "check the arguments, and the device with clinfo";
  return std::string(call) + " gave " + error_name(code) + ": " + std::string(advice);
}

constinit ForkGuard guard;

Status fork_error() {
  // Lost, so that no kernel is quarantined for it and another one tried: they would all say the same.
  return {ErrorCode::device_lost,
          "OpenCL was started before this process was forked, and its drivers do not work in the child: use it only "
          "after the fork, or start processes anew (multiprocessing's \"spawn\")"};
}

}  // namespace

bool broken_by_fork() { return guard.broken(); }

Status usable_here() { return guard.broken() ? fork_error() : Status(); }

Status start_here() { return guard.start() ? Status() : fork_error(); }

std::string error_name(cl_int code) {
  for (const NamedCode& named : named_codes)
    if (named.code == code) return std::string(named.name) + " (" + std::to_string(code) + ")";
  return "error " + std::to_string(code);
}

ErrorCode error_code_of(cl_int code) {
  switch (code) {
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return ErrorCode::out_of_memory;
    default:
      return ErrorCode::device_error;
  }
}

Status to_status(cl_int code, std::string_view call) {
  if (code == CL_SUCCESS) return {};
  return {error_code_of(code), describe(code, call)};
}

void check(cl_int code, std::string_view function, std::string_view call) {
  if (code != CL_SUCCESS) fail(error_code_of(code), function, describe(code, call));
}

namespace {

struct KnownQueue {
  Queue queue;
  std::uint64_t id = 0;
};

bool only_we_hold(cl_command_queue queue) {
  cl_uint references = 0;
  const cl_int code = clGetCommandQueueInfo(queue, CL_QUEUE_REFERENCE_COUNT, sizeof(references), &references, nullptr);
  return code == CL_SUCCESS && references == 1;
}

}  // namespace

std::uint64_t queue_id(cl_command_queue queue) {
  // Never destroyed: threads may still call when the process ends.
  static auto& mutex = *new Mutex;
  static auto& known = *new std::vector<KnownQueue>;
  static std::uint64_t last = 0;
  const std::lock_guard lock(mutex);
  for (const KnownQueue& other : known) {
    if (other.queue.get() == queue) return other.id;
  }
  std::erase_if(known, [](const KnownQueue& other) { return only_we_hold(other.queue.get()); });
  check(clRetainCommandQueue(queue), "stream", "clRetainCommandQueue");
  known.push_back({Queue(queue), ++last});
  return last;
}

}  // namespace xpuruntime::opencl
