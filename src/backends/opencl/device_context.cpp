#include "backends/opencl/device_context.h"

#include "backends/opencl/kernel_sources.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t shown_log_lines = 8;

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t bytes = 0;
  if (clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes) != CL_SUCCESS) return {};
  std::string log(bytes, '\0');
  clGetProgramBuildInfo(program, device, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

std::string first_lines(const std::string& text) {
  std::size_t end = 0;
  for (std::size_t line = 0; line < shown_log_lines && end != std::string::npos; ++line)
    end = text.find('\n', end == 0 ? 0 : end + 1);
  return text.substr(0, end);
}

Program build(cl_context context, cl_device_id device, std::string_view source, const std::string& options) {
  const char* texts[] = {common_cl, source.data()};
  const std::size_t sizes[] = {std::string_view(common_cl).size(), source.size()};
  cl_int code = CL_SUCCESS;
  Program program(clCreateProgramWithSource(context, 2, texts, sizes, &code));
  check(code, "opencl::build", "clCreateProgramWithSource");
  code = clBuildProgram(program.get(), 1, &device, options.c_str(), nullptr, nullptr);
  if (code == CL_SUCCESS) return program;
  fail(ErrorCode::device_error, "opencl::build",
       "clBuildProgram gave " + error_name(code) + " with options '" + options + "':\n" +
           first_lines(build_log(program.get(), device)) +
           "\nupdate the OpenCL driver, or choose a kernel of another backend");
}

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
  Queue queue(clCreateCommandQueue(context.get(), device_, CL_QUEUE_PROFILING_ENABLE, &code));
  check(code, "opencl::open", "clCreateCommandQueue");
  context_ = std::move(context);
  queue_ = std::move(queue);
}

cl_context DeviceContext::context() {
  std::call_once(opened_, [this] { open(); });
  return context_.get();
}

cl_command_queue DeviceContext::queue() {
  std::call_once(opened_, [this] { open(); });
  return queue_.get();
}

Queue DeviceContext::make_queue() {
  cl_int code = CL_SUCCESS;
  Queue queue(clCreateCommandQueue(context(), device_, CL_QUEUE_PROFILING_ENABLE, &code));
  check(code, "opencl::create_stream", "clCreateCommandQueue");
  return queue;
}

std::shared_ptr<Program> DeviceContext::program(std::string_view source, const std::string& options) {
  return programs_.get_or_make(options + '\n' + std::string(source),
                               [&] { return build(context(), device_, source, options); });
}

void DeviceContext::note_queue(cl_command_queue queue) {
  const std::lock_guard lock(mutex_);
  noted_.push_back(queue);
}

void DeviceContext::forget_queue(cl_command_queue queue) {
  const std::lock_guard lock(mutex_);
  std::erase(noted_, queue);
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
    Status status = fault->take(queue());
    if (first.ok()) first = std::move(status);
  }
  return first;
}

cl_int DeviceContext::finish_all() {
  cl_int result = clFinish(queue());
  std::vector<cl_command_queue> noted;
  {
    // References keep them while they are waited for without the lock: their owners may release them meanwhile.
    const std::lock_guard lock(mutex_);
    noted = noted_;
    for (cl_command_queue other : noted) clRetainCommandQueue(other);
  }
  for (cl_command_queue other : noted) {
    const cl_int code = clFinish(other);
    if (result == CL_SUCCESS) result = code;
    clReleaseCommandQueue(other);
  }
  return result;
}

}  // namespace xpuruntime::opencl
