#include "backends/opencl/launch.h"

#include <algorithm>

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t usual_local = 256;

KernelHandle make_function(DeviceContext& device, const LaunchSpec& spec) {
  // 1.2 everywhere: what newer versions of the language make optional is then never in doubt.
  const std::shared_ptr<Program> program = device.program(spec.source, "-cl-std=CL1.2" + spec.options);
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(clCreateKernel(program->get(), spec.function, &code));
  check(code, spec.function, "clCreateKernel");
  return kernel;
}

Queue share(cl_command_queue queue) {
  clRetainCommandQueue(queue);
  return Queue(queue);
}

std::size_t largest_local(cl_kernel kernel, cl_device_id device) {
  std::size_t largest = 0;
  const cl_int code =
      clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(largest), &largest, nullptr);
  return code == CL_SUCCESS && largest > 0 ? largest : 1;
}

}  // namespace

DeviceContext& context_of(const PrepareContext& context) {
  auto* driver = dynamic_cast<OpenClDriver*>(&context.driver);
  if (!driver || context.device.type != DeviceType::opencl || context.device.index >= driver->devices().size())
    fail(ErrorCode::invalid_argument, "opencl::prepare",
         to_string(context.device) + " is not a device of this backend's driver: prepare on an OpenCL device");
  return driver->context(context.device.index);
}

std::string type_option(char letter, DataType dtype) {
  return std::string(" -D ") + letter + "_TYPE=" + std::string(to_string(dtype));
}

LaunchPlan::LaunchPlan(DeviceContext& device, LaunchSpec spec, std::size_t tensors)
    : kernel_(make_function(device, spec)),
      default_queue_(share(device.queue())),
      token_(std::move(spec.token)),
      next_argument_(static_cast<cl_uint>(2 * tensors)) {
  const std::size_t largest = largest_local(kernel_.get(), device.device());
  if (spec.local > largest)
    fail(ErrorCode::device_error, spec.function,
         "needs work-groups of " + std::to_string(spec.local) + ", the compiled kernel allows " +
             std::to_string(largest) + ": choose another kernel");
  local_ = spec.local ? spec.local : std::min(usual_local, largest);
  // Whole work-groups; the kernel leaves out what is past the end.
  items_ = (static_cast<std::size_t>(spec.items) + local_ - 1) / local_ * local_;
}

Status LaunchPlan::run(const RunArguments& arguments) const {
  if (items_ == 0) return {};
  if (Status status = usable_here(); !status.ok()) return status;
  auto* queue = arguments.stream.handle ? static_cast<cl_command_queue>(arguments.stream.handle) : default_queue_.get();
  std::unique_lock lock(mutex_);
  cl_uint position = 0;
  for (const auto& tensors : {arguments.inputs, arguments.outputs})
    for (const Tensor* tensor : tensors) {
      Status status = set_tensor(position, *tensor);
      if (!status.ok()) return status;
      position += 2;
    }
  const cl_int code = clEnqueueNDRangeKernel(queue, kernel_.get(), 1, nullptr, &items_, &local_, 0, nullptr, nullptr);
  lock.unlock();
  if (code != CL_SUCCESS) return to_status(code, "clEnqueueNDRangeKernel");
  return to_status(clFlush(queue), "clFlush");
}

void LaunchPlan::add_constant(const void* value, std::size_t bytes) {
  check(clSetKernelArg(kernel_.get(), next_argument_++, bytes, value), "opencl::prepare", "clSetKernelArg");
}

Status LaunchPlan::set_tensor(cl_uint position, const Tensor& tensor) const {
  const std::size_t element = size_of(tensor.dtype());
  if (tensor.byte_offset() % element != 0)
    return {ErrorCode::invalid_argument, "byte offset " + std::to_string(tensor.byte_offset()) +
                                             " is not a multiple of the element size: copy the tensor first"};
  auto* buffer = static_cast<cl_mem>(tensor.data());
  const cl_ulong start = tensor.byte_offset() / element;
  const cl_int code = clSetKernelArg(kernel_.get(), position, sizeof(cl_mem), &buffer);
  if (code != CL_SUCCESS) return to_status(code, "clSetKernelArg");
  return to_status(clSetKernelArg(kernel_.get(), position + 1, sizeof(start), &start), "clSetKernelArg");
}

}  // namespace xpuruntime::opencl
