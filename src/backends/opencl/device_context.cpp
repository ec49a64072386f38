#include "backends/opencl/device_context.h"

#include "backends/opencl/kernel_sources.h"
#include "backends/opencl/programs.h"

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

}  // namespace

Fault::Fault(DeviceContext& device, std::string message) : message_(std::move(message)) {
  cl_uint none = 0;
  cl_int code = CL_SUCCESS;
  word_.reset(clCreateBuffer(device.context(), CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, sizeof(none), &none, &code));
  check(code, "make_value_fault", "clCreateBuffer");
}

void* Fault::word() const {
  used_.store(true, std::memory_order_relaxed);
  return word_.get();
}

Status Fault::take(cl_command_queue queue) const {
  if (!used_.exchange(false, std::memory_order_relaxed)) return {};
  cl_uint found = 0;
  const cl_uint none = 0;
  cl_int code = clEnqueueReadBuffer(queue, word_.get(), CL_TRUE, 0, sizeof(found), &found, 0, nullptr, nullptr);
  if (code == CL_SUCCESS && found == 0) return {};
  if (code == CL_SUCCESS)
    code = clEnqueueWriteBuffer(queue, word_.get(), CL_TRUE, 0, sizeof(none), &none, 0, nullptr, nullptr);
  return code == CL_SUCCESS ? Status(ErrorCode::invalid_argument, message_) : to_status(code, "clEnqueueReadBuffer");
}

void DeviceContext::open() {
  cl_int code = CL_SUCCESS;
  Context context(clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &code));
  check(code, "opencl::open", "clCreateContext");
  Queue queue(clCreateCommandQueue(context.get(), device_, 0, &code));
  check(code, "opencl::open", "clCreateCommandQueue");
  context_ = std::move(context);
  queue_ = std::move(queue);
}

cl_context DeviceContext::context() {
  std::call_once(opened_, [this] { open(); });
  return context_.get();
}

QueueUse DeviceContext::use(Stream stream) {
  if (stream.handle != nullptr) return {{}, static_cast<cl_command_queue>(stream.handle)};
  context();
  std::shared_lock lock(queue_mutex_);
  cl_command_queue queue = queue_.get();
  return {std::move(lock), queue};
}

Queue DeviceContext::make_queue(bool times) {
  cl_int code = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context(), device_, times ? CL_QUEUE_PROFILING_ENABLE : 0, &code));
  check(code, "opencl::create_stream", "clCreateCommandQueue");
  return queue;
}

void DeviceContext::keep_times() {
  if (times_.load(std::memory_order_acquire)) return;
  Queue timed = make_queue(true);
  const std::unique_lock lock(queue_mutex_);
  if (times_.load(std::memory_order_relaxed)) return;
  cl_event last = nullptr;
  check(clEnqueueMarkerWithWaitList(queue_.get(), 0, nullptr, &last), "record_event", "clEnqueueMarkerWithWaitList");
  clFlush(queue_.get());
  const cl_int code = clEnqueueBarrierWithWaitList(timed.get(), 1, &last, nullptr);
  clReleaseEvent(last);
  check(code, "record_event", "clEnqueueBarrierWithWaitList");
  queue_ = std::move(timed);
  times_.store(true, std::memory_order_release);
}

void DeviceContext::launched(cl_command_queue queue) {
  if (launches_.fetch_add(1, std::memory_order_relaxed) % 16 == 15) clFlush(queue);
}

std::shared_ptr<Program> DeviceContext::program(std::string_view source, const std::string& options, bool ours) {
  const std::string_view common = ours ? common_cl : "";
  return programs_.get_or_make((ours ? "o" : "u") + options + '\n' + std::string(source), [&] {
    return build_program({context(), device_, common, source, options});
  });
}

std::unique_ptr<ValueFault> DeviceContext::make_fault(std::string message) {
  const auto fault = std::make_shared<const Fault>(*this, std::move(message));
  const std::lock_guard lock(mutex_);
  std::erase_if(faults_, [](const auto& held) { return held.expired(); });
  faults_.push_back(fault);
  return std::make_unique<HeldFault>(fault);
}

Status DeviceContext::take_faults() {
  std::vector<std::shared_ptr<const Fault>> held;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& fault : faults_) {
      if (auto locked = fault.lock()) held.push_back(std::move(locked));
    }
  }
  Status first;
  for (const auto& fault : held) {
    Status status = fault->take(use({}));
    if (first.ok()) first = std::move(status);
  }
  return first;
}

cl_int DeviceContext::finish_all() {
  cl_int result = clFinish(use({}));
  for (const Queue& other : queues_of(context())) {
    const cl_int code = clFinish(other.get());
    if (result == CL_SUCCESS) result = code;
  }
  return result;
}

}  // namespace xpuruntime::opencl
