#include "backends/opencl/driver.h"

#include <algorithm>
#include <utility>

#include "backends/opencl/profile.h"
#include "backends/opencl/source_function.h"

namespace xpuruntime::opencl {
namespace {

/// The plan's end of a fault, which the device knows of too.
class HeldFault final : public ValueFault {
 public:
  explicit HeldFault(std::shared_ptr<const Fault> fault) : fault_(std::move(fault)) {}
  void* word() const override { return fault_->word(); }

 private:
  std::shared_ptr<const Fault> fault_;
};

/// When the work before the event was done, in the device's nanoseconds; 0 if the driver cannot tell.
cl_ulong finished_at(cl_event event) {
  cl_ulong time = 0;
  const cl_int code = clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr);
  return code == CL_SUCCESS ? time : 0;
}

cl_event handle_of(Event event) { return static_cast<cl_event>(event.handle); }

}  // namespace

OpenClDriver::Found OpenClDriver::find() {
  Found found{discover()};
  for (cl_device_id device : found.discovery.devices) found.contexts.push_back(std::make_unique<DeviceContext>(device));
  return found;
}

DeviceContext& OpenClDriver::context(int index) {
  if (const Status status = usable_here(); !status.ok()) fail(status.code(), "opencl", status.message());
  return *found().contexts[static_cast<std::size_t>(index)];
}

void* OpenClDriver::allocate(int index, std::size_t bytes) {
  DeviceContext& device = context(index);
  // Some drivers take any size here and fail at the first launch instead.
  const std::uint64_t largest = device_value<cl_ulong>(device.device(), CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  if (largest != 0 && bytes > largest)
    fail(ErrorCode::out_of_memory, "OpenClDriver::allocate",
         std::to_string(bytes) + " bytes are more than the " + std::to_string(largest) +
             " that the device allocates at once: use smaller tensors");
  cl_int code = CL_SUCCESS;
  // OpenCL has no buffers of no bytes.
  const auto create = [&] {
    return clCreateBuffer(device.context(), CL_MEM_READ_WRITE, std::max<std::size_t>(bytes, 1), nullptr, &code);
  };
  cl_mem memory = create();
  // What was freed while work used it is there again when that is done.
  if (code != CL_SUCCESS && error_code_of(code) == ErrorCode::out_of_memory && device.finish_all() == CL_SUCCESS)
    memory = create();
  check(code, "OpenClDriver::allocate", "clCreateBuffer of " + std::to_string(bytes) + " bytes");
  return memory;
}

void OpenClDriver::deallocate(int, void* memory) noexcept { Release()(static_cast<cl_mem>(memory)); }

Status OpenClDriver::copy_from_host(int index, void* memory, std::size_t byte_offset, const void* host,
                                    std::size_t bytes, Stream stream) {
  if (bytes == 0) return {};
  if (Status status = usable_here(); !status.ok()) return status;
  return to_status(clEnqueueWriteBuffer(context(index).use(stream), static_cast<cl_mem>(memory), CL_TRUE, byte_offset,
                                        bytes, host, 0, nullptr, nullptr),
                   "clEnqueueWriteBuffer");
}

Status OpenClDriver::copy_to_host(int index, void* host, const void* memory, std::size_t byte_offset, std::size_t bytes,
                                  Stream stream) {
  if (bytes == 0) return {};
  if (Status status = usable_here(); !status.ok()) return status;
  cl_mem source = static_cast<cl_mem>(const_cast<void*>(memory));
  return to_status(
      clEnqueueReadBuffer(context(index).use(stream), source, CL_TRUE, byte_offset, bytes, host, 0, nullptr, nullptr),
      "clEnqueueReadBuffer");
}

Stream OpenClDriver::create_stream(int index) {
  cl_command_queue queue = context(index).make_queue().release();
  return {queue, stream_id(index, queue)};
}

std::uint64_t OpenClDriver::stream_id(int, void* handle) { return queue_id(static_cast<cl_command_queue>(handle)); }

void OpenClDriver::destroy_stream(int, Stream stream) noexcept {
  Release()(static_cast<cl_command_queue>(stream.handle));
}

Status OpenClDriver::synchronize(int index, Stream stream) {
  if (Status status = usable_here(); !status.ok()) return status;
  DeviceContext& device = context(index);
  const cl_int code = stream.handle ? clFinish(device.use(stream)) : device.finish_all();
  return code == CL_SUCCESS ? device.take_faults(stream) : to_status_of_work(code, "clFinish");
}

Status OpenClDriver::wait(int index) {
  if (Status status = usable_here(); !status.ok()) return status;
  return to_status_of_work(context(index).finish_all(), "clFinish");
}

std::shared_ptr<SourceFunction> OpenClDriver::compile(int index, const FunctionSource& source) {
  return make_source_function(context(index), source, index);
}

std::unique_ptr<ValueFault> OpenClDriver::make_value_fault(int index, std::string message) {
  return std::make_unique<HeldFault>(context(index).make_fault(std::move(message)));
}

// OpenCL makes events by recording them: until then there is none, and waiting for none is done at once.
Event OpenClDriver::create_event(int) { return {}; }

void OpenClDriver::destroy_event(int, Event event) noexcept { Release()(handle_of(event)); }

Status OpenClDriver::record_event(int index, Event& event, Stream stream) {
  if (Status status = usable_here(); !status.ok()) return status;
  DeviceContext& device = context(index);
  if (!stream.handle) device.keep_times();
  const QueueUse queue = device.use(stream);
  cl_event marker = nullptr;
  const cl_int code = clEnqueueMarkerWithWaitList(queue, 0, nullptr, &marker);
  if (code != CL_SUCCESS) return to_status(code, "clEnqueueMarkerWithWaitList");
  destroy_event(index, std::exchange(event, Event{marker}));
  // Without this a queue may keep the marker to itself, and event_done would never come true.
  return to_status(clFlush(queue), "clFlush");
}

Status OpenClDriver::wait_event(int, Event event) {
  if (!event.handle) return {};
  if (Status status = usable_here(); !status.ok()) return status;
  cl_event handle = handle_of(event);
  return to_status_of_work(clWaitForEvents(1, &handle), "clWaitForEvents");
}

Status OpenClDriver::queue_wait(int index, Stream stream, Event event) {
  if (!event.handle) return {};
  if (Status status = usable_here(); !status.ok()) return status;
  cl_event handle = handle_of(event);
  return to_status(clEnqueueBarrierWithWaitList(context(index).use(stream), 1, &handle, nullptr),
                   "clEnqueueBarrierWithWaitList");
}

bool OpenClDriver::event_done(int, Event event) {
  if (!event.handle || broken_by_fork()) return true;
  cl_int state = CL_QUEUED;
  const cl_int code =
      clGetEventInfo(handle_of(event), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(state), &state, nullptr);
  return code != CL_SUCCESS || state <= CL_COMPLETE;  // negative: it failed, and wait_event says how
}

double OpenClDriver::elapsed_us(int, Event from, Event to) {
  if (!from.handle || !to.handle || broken_by_fork()) return -1;
  const cl_ulong start = finished_at(handle_of(from));
  const cl_ulong end = finished_at(handle_of(to));
  if (start == 0 || end < start) return -1;
  return static_cast<double>(end - start) / 1000.0;
}

}  // namespace xpuruntime::opencl
