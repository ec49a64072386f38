#include "backends/opencl/source_function.h"

#include <algorithm>
#include <set>

#include "backends/opencl/profile.h"
#include "backends/opencl/programs.h"
#include "core/printable.h"

namespace xpuruntime::opencl {
namespace {

Status wrong(std::string message) { return {ErrorCode::invalid_argument, std::move(message)}; }

template <class T>
T kernel_value(cl_kernel kernel, cl_device_id device, cl_kernel_work_group_info what) {
  T value = {};
  return clGetKernelWorkGroupInfo(kernel, device, what, sizeof(value), &value, nullptr) == CL_SUCCESS ? value : T{};
}

class Function final : public SourceFunction {
 public:
  Function(DeviceContext& device, const FunctionSource& source, int index)
      : device_(device), index_(index), name_(source.function), source_(source) {
    program_ = device.program(source.text, source.flags, false);
    cl_int code = CL_SUCCESS;
    kernel_.reset(clCreateKernel(program_->get(), name_.c_str(), &code));
    if (code == CL_INVALID_KERNEL_NAME)
      fail(ErrorCode::unknown_name, "opencl::compile",
           "the source has no __kernel function '" + printable(name_) + "': check the name" +
               (source.text.find(name_) == std::string::npos ? "" : advice_on_damage(device.device())));
    check(code, "opencl::compile", "clCreateKernel");
    read_limits();
  }

  FunctionLimits limits() const override { return limits_; }

  Status run(const FunctionLaunch& launch, Stream stream) override {
    if (Status status = usable_here(); !status.ok()) return status;
    const QueueUse queue = device_.use(stream);
    Status status = enqueue(launch, queue, nullptr);
    if (status.ok()) device_.launched(queue);
    return status;
  }

  Status run_timed(const FunctionLaunch& launch, double& device_us) override {
    device_us = -1;
    if (Status status = usable_here(); !status.ok()) return status;
    // What was queued before may fill its arguments.
    if (const cl_int code = device_.finish_all(); code != CL_SUCCESS) return to_status_of_work(code, "clFinish");
    {
      const std::lock_guard lock(mutex_);
      if (!timed_) timed_ = device_.make_queue();
    }
    cl_event event = nullptr;
    Status status = enqueue(launch, timed_.get(), &event);
    if (!status.ok()) return status;
    status = to_status_of_work(clWaitForEvents(1, &event), "clWaitForEvents");
    cl_ulong start = 0, end = 0;
    if (status.ok() && clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_START, sizeof start, &start, nullptr) == 0 &&
        clGetEventProfilingInfo(event, CL_PROFILING_COMMAND_END, sizeof end, &end, nullptr) == 0 && end >= start)
      device_us = static_cast<double>(end - start) / 1000.0;
    clReleaseEvent(event);
    return status;
  }

 private:
  void read_limits() {
    cl_device_id device = device_.device();
    limits_.max_items =
        std::max<std::size_t>(1, kernel_value<std::size_t>(kernel_.get(), device, CL_KERNEL_WORK_GROUP_SIZE));
    limits_.multiple = std::max<std::size_t>(
        1, kernel_value<std::size_t>(kernel_.get(), device, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE));
    limits_.required = kernel_value<WorkSize>(kernel_.get(), device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE);
    limits_.local_bytes = kernel_value<cl_ulong>(kernel_.get(), device, CL_KERNEL_LOCAL_MEM_SIZE);
    limits_.max_local_bytes = device_value<cl_ulong>(device, CL_DEVICE_LOCAL_MEM_SIZE);
    limits_.max_sizes = {limits_.max_items, limits_.max_items, limits_.max_items};
    std::vector<std::size_t> sizes(
        std::max<cl_uint>(3, device_value<cl_uint>(device, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS)));
    if (clGetDeviceInfo(device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes.size() * sizeof(std::size_t), sizes.data(),
                        nullptr) == CL_SUCCESS)
      for (std::size_t d = 0; d < 3; ++d)
        limits_.max_sizes[d] = std::min(limits_.max_items, std::max<std::size_t>(1, sizes[d]));
    cl_uint parameters = 0;
    check(clGetKernelInfo(kernel_.get(), CL_KERNEL_NUM_ARGS, sizeof parameters, &parameters, nullptr),
          "opencl::compile", "clGetKernelInfo");
    limits_.parameters = parameters;
  }

  Status check_sizes(const FunctionLaunch& launch, bool chosen) const {
    for (const std::size_t size : launch.global)
      if (size == 0)
        return wrong("the global size of '" + name_ + "' has a 0: give 1 for dimensions that are not used");
    if (!has_countable_groups(launch.global, launch.local))
      return wrong("the global size " + to_string(launch.global) + " of '" + name_ + "' is more than 2^31 work-groups" +
                   (chosen ? " of " + to_string(launch.local) + ": use larger work-groups, or several launches"
                           : ", as the driver may choose those of one item: give it a work-group size"));
    std::uint64_t local_bytes = limits_.local_bytes;
    for (const FunctionArgument& argument : launch.arguments) {
      if (argument.local_bytes > limits_.max_local_bytes)
        local_bytes = argument.local_bytes;  // alone too much, and the sum might not fit 64 bits
      else
        local_bytes += argument.local_bytes;
      if (local_bytes > limits_.max_local_bytes)
        return wrong("'" + name_ + "' needs " + std::to_string(local_bytes) +
                     " bytes of local memory, the device has " + std::to_string(limits_.max_local_bytes) +
                     ": use less");
    }
    if (!chosen) return {};
    std::size_t items = 1;
    for (std::size_t d = 0; d < 3; ++d) {
      items *= launch.local[d];
      if (launch.local[d] > limits_.max_sizes[d])
        return wrong("work-group " + to_string(launch.local) + " of '" + name_ + "' is over the device's " +
                     std::to_string(limits_.max_sizes[d]) + " in dimension " + std::to_string(d) +
                     ": use a smaller one");
    }
    if (items > limits_.max_items)
      return wrong("work-group " + to_string(launch.local) + " of '" + name_ + "' has " + std::to_string(items) +
                   " items, the compiled kernel allows " + std::to_string(limits_.max_items) + ": use a smaller one");
    if (limits_.required[0] != 0 && launch.local != limits_.required)
      return wrong("'" + name_ + "' requires work-groups of " + to_string(limits_.required) + ", not " +
                   to_string(launch.local) + ": use that size, or change its attribute reqd_work_group_size");
    return {};
  }

  /// The tensor's memory; from its start, for which a part of the buffer is made.
  Status memory_of(const Tensor& tensor, Buffer& part, cl_mem& memory) const {
    if (tensor.device() != Device{DeviceType::opencl, static_cast<std::uint8_t>(index_)})
      return wrong("a tensor is on " + to_string(tensor.device()) + ", and '" + name_ +
                   "' was built for opencl:" + std::to_string(index_) + ": copy it there first");
    memory = static_cast<cl_mem>(const_cast<void*>(tensor.data()));
    if (tensor.byte_offset() == 0 || memory == nullptr) return {};
    std::size_t bytes = 0;
    clGetMemObjectInfo(memory, CL_MEM_SIZE, sizeof bytes, &bytes, nullptr);
    const cl_buffer_region region = {tensor.byte_offset(), bytes - tensor.byte_offset()};
    cl_int code = CL_SUCCESS;
    part.reset(clCreateSubBuffer(memory, 0, CL_BUFFER_CREATE_TYPE_REGION, &region, &code));
    if (code == CL_MISALIGNED_SUB_BUFFER_OFFSET)
      return wrong("a tensor starts " + std::to_string(tensor.byte_offset()) +
                   " bytes into its memory, where the device lets none start: copy it first");
    memory = part.get();
    return to_status(code, "clCreateSubBuffer");
  }

  Status set(cl_uint i, const FunctionArgument& argument, std::vector<Buffer>& parts) const {
    std::size_t bytes = argument.local_bytes;
    const void* from = nullptr;
    cl_mem memory = nullptr;
    if (!argument.value.empty()) {
      bytes = argument.value.size();
      from = argument.value.data();
    } else if (bytes == 0) {
      Status status = memory_of(argument.tensor, parts.emplace_back(), memory);
      if (!status.ok()) return status;
      bytes = sizeof memory;
      from = &memory;
    }
    const cl_int code = clSetKernelArg(kernel_.get(), i, bytes, from);
    if (code == CL_SUCCESS) return {};
    return wrong("argument " + std::to_string(i) + " of '" + name_ + "', of " + std::to_string(bytes) +
                 " bytes, gave " + error_name(code) + ": its type must be that of the parameter");
  }

  Status enqueue(const FunctionLaunch& launch, cl_command_queue queue, cl_event* event) {
    if (launch.arguments.size() != limits_.parameters)
      return wrong("'" + name_ + "' has " + std::to_string(limits_.parameters) + " parameters, and " +
                   std::to_string(launch.arguments.size()) + " arguments were given");
    WorkSize local = launch.local[0] == 0 ? limits_.required : filled(launch.local);
    const bool chosen = local[0] != 0;
    WorkSize global = filled(launch.global);
    if (Status status = check_sizes({launch.arguments, global, local}, chosen); !status.ok()) return status;
    if (chosen)
      for (std::size_t d = 0; d < 3; ++d) global[d] = (global[d] + local[d] - 1) / local[d] * local[d];
    // The arguments belong to the cl_kernel until it is queued; OpenCL keeps the memory that queued work uses.
    std::vector<Buffer> parts;
    const std::lock_guard lock(mutex_);
    if (Status status = make_machine_code(variant_of(global, local)); !status.ok()) return status;
    for (cl_uint i = 0; i < launch.arguments.size(); ++i)
      if (Status status = set(i, launch.arguments[i], parts); !status.ok()) return status;
    const auto put = [&] {
      return clEnqueueNDRangeKernel(queue, kernel_.get(), 3, nullptr, global.data(), chosen ? local.data() : nullptr, 0,
                                    nullptr, event);
    };
    cl_int code = put();
    if (code != CL_SUCCESS && error_code_of(code) == ErrorCode::out_of_memory && clFinish(queue) == CL_SUCCESS)
      code = put();
    return to_status(code, "clEnqueueNDRangeKernel");
  }

  /// Under the lock.
  Status make_machine_code(const CodeVariant& variant) {
    constexpr std::size_t many = 1000;
    if (made_.contains(variant)) return {};
    try {
      device_.make_machine_code(source_.text, source_.flags, name_, variant, false);
    } catch (const Error& error) {
      return {error.code(), error.what()};
    }
    if (made_.size() >= many) made_.clear();
    made_.insert(variant);
    return {};
  }

  DeviceContext& device_;
  int index_;
  std::string name_;
  FunctionSource source_;
  std::set<CodeVariant> made_;
  std::shared_ptr<Program> program_;
  KernelHandle kernel_;
  FunctionLimits limits_;
  Queue timed_;
  Mutex mutex_;
};

}  // namespace

std::shared_ptr<SourceFunction> make_source_function(DeviceContext& device, const FunctionSource& source, int index) {
  return std::make_shared<Function>(device, source, index);
}

}  // namespace xpuruntime::opencl
