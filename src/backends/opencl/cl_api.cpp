#include "backends/opencl/cl_api.h"

#include <vector>

#include "core/fork_guard.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime::opencl {
namespace {

/// What NVIDIA's driver says of everything after a kernel has used memory that is not its own.
constexpr cl_int illegal_access = -9999;

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
    {-13, "CL_MISALIGNED_SUB_BUFFER_OFFSET"},
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
    {illegal_access, "NVIDIA's illegal access"},
};

std::string_view advice(ErrorCode code) {
  switch (code) {
    case ErrorCode::out_of_memory:
      return "free device memory or make the problem smaller";
    case ErrorCode::device_lost:
      return "the device is gone: restart the process when it is back";
    case ErrorCode::invalid_argument:
      return "the queue and the tensors belong to different contexts: make the queue in the context of the tensors' "
             "memory (CL_MEM_CONTEXT), or take a stream of this library";
    default:
      return "check the arguments, and the device with clinfo";
  }
}

std::string describe(cl_int code, std::string_view call, ErrorCode meaning) {
  return std::string(call) + " gave " + error_name(code) + ": " + std::string(advice(meaning));
}

std::string describe(cl_int code, std::string_view call) { return describe(code, call, error_code_of(code)); }

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
    case CL_OUT_OF_RESOURCES:
    case CL_OUT_OF_HOST_MEMORY:
    case CL_INVALID_BUFFER_SIZE:
      return ErrorCode::out_of_memory;
    case CL_DEVICE_NOT_AVAILABLE:
    case illegal_access:
      return ErrorCode::device_lost;
    case CL_INVALID_CONTEXT:
      return ErrorCode::invalid_argument;
    default:
      return ErrorCode::device_error;
  }
}

Status to_status(cl_int code, std::string_view call) {
  if (code == CL_SUCCESS) return {};
  return {error_code_of(code), describe(code, call)};
}

Status to_status_of_work(cl_int code, std::string_view call) {
  // A driver that gives a queue up has lost what ran in it.
  if (code == CL_INVALID_COMMAND_QUEUE) return {ErrorCode::device_lost, describe(code, call, ErrorCode::device_lost)};
  if (code != CL_OUT_OF_RESOURCES) return to_status(code, call);
  return {ErrorCode::device_error, std::string(call) + " gave " + error_name(code) +
                                       ": a kernel failed, which may have used memory that is not its own"};
}

void check(cl_int code, std::string_view function, std::string_view call) {
  if (code != CL_SUCCESS) fail(error_code_of(code), function, describe(code, call));
}

namespace {

struct KnownQueue {
  Queue queue;
  std::uint64_t id = 0;
};

/// Never destroyed: threads may still call when the process ends.
struct KnownQueues {
  Mutex mutex;
  std::vector<KnownQueue> all;
  std::uint64_t last = 0;
};
KnownQueues& known_queues() {
  static auto& known = *new KnownQueues;
  return known;
}

template <class T>
T queue_value(cl_command_queue queue, cl_command_queue_info what) {
  T value = {};
  return clGetCommandQueueInfo(queue, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

Queue share(cl_command_queue queue) {
  check(clRetainCommandQueue(queue), "stream", "clRetainCommandQueue");
  return Queue(queue);
}

}  // namespace

std::uint64_t queue_id(cl_command_queue queue) {
  if (clRetainCommandQueue == nullptr)
    fail(ErrorCode::invalid_argument, "stream", "OpenCL was not started: ask for its devices first");
  KnownQueues& known = known_queues();
  const std::lock_guard lock(known.mutex);
  for (const KnownQueue& other : known.all) {
    if (other.queue.get() == queue) return other.id;
  }
  if ((queue_value<cl_command_queue_properties>(queue, CL_QUEUE_PROPERTIES) & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) !=
      0)
    fail(ErrorCode::invalid_argument, "stream",
         "the queue runs its work out of order: make one without CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE");
  std::erase_if(known.all, [](const KnownQueue& other) {
    return queue_value<cl_uint>(other.queue.get(), CL_QUEUE_REFERENCE_COUNT) == 1;
  });
  known.all.push_back({share(queue), ++known.last});
  return known.last;
}

std::vector<Queue> queues_of(cl_context context) {
  KnownQueues& known = known_queues();
  const std::lock_guard lock(known.mutex);
  std::vector<Queue> found;
  for (const KnownQueue& other : known.all)
    if (queue_value<cl_context>(other.queue.get(), CL_QUEUE_CONTEXT) == context)
      found.push_back(share(other.queue.get()));
  return found;
}

}  // namespace xpuruntime::opencl
