#include "backends/opencl/launch.h"

#include <algorithm>
#include <utility>

#include "backends/opencl/programs.h"

namespace xpuruntime::opencl {
namespace {

constexpr std::size_t usual_local = 256;

// 1.2 everywhere: what newer versions of the language make optional is then never in doubt.
std::string options_of(const LaunchSpec& spec) { return "-cl-std=CL1.2" + spec.options; }

KernelHandle make_function(DeviceContext& device, const LaunchSpec& spec) {
  const std::shared_ptr<Program> program = device.program(spec.source, options_of(spec));
  cl_int code = CL_SUCCESS;
  KernelHandle kernel(clCreateKernel(program->get(), spec.function, &code));
  if (code == CL_INVALID_KERNEL_NAME)
    fail(ErrorCode::device_error, spec.function,
         "the program that the OpenCL driver built has no such kernel (" + error_name(code) + ")" +
             advice_on_damage(device.device()));
  check(code, spec.function, "clCreateKernel");
  return kernel;
}

std::size_t largest_local(cl_kernel kernel, cl_device_id device) {
  std::size_t largest = 0;
  const cl_int code =
      clGetKernelWorkGroupInfo(kernel, device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(largest), &largest, nullptr);
  return code == CL_SUCCESS && largest > 0 ? largest : 1;
}

bool in_place(const RunArguments& arguments, std::size_t i) {
  const Tensor &from = *arguments.inputs[i], &to = *arguments.outputs[i];
  return from.data() == to.data() && from.byte_offset() == to.byte_offset();
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

Launch::Launch(DeviceContext& device, const LaunchSpec& spec, Launch* earlier)
    : function_(spec.function + spec.options) {
  if (earlier != nullptr && earlier->function_ == function_) {
    kernel_ = std::move(earlier->kernel_);
    largest_local_ = earlier->largest_local_;
    variant_ = earlier->variant_;
  } else {
    kernel_ = make_function(device, spec);
    largest_local_ = largest_local(kernel_.get(), device.device());
  }
  const std::size_t largest = largest_local_;
  if (spec.local > largest)
    fail(ErrorCode::not_supported, spec.function,
         "needs work-groups of " + std::to_string(spec.local) + ", the compiled kernel allows " +
             std::to_string(largest) + ": choose another kernel");
  local_ = spec.local ? spec.local : std::min(usual_local, largest);
  // Whole work-groups; the kernel leaves out what is past the end.
  items_ = (static_cast<std::size_t>(spec.items) + local_ - 1) / local_ * local_;
  const CodeVariant variant = variant_of({items_, 1, 1}, {local_, 1, 1});
  if (items_ == 0 || variant == variant_) return;
  device.make_machine_code(spec.source, options_of(spec), spec.function, variant);
  variant_ = variant;
}

Launch& Launch::bind(Source source, std::size_t index, std::size_t element) {
  bindings_.push_back({source, index, element, next_});
  next_ += 2;
  return *this;
}

Launch& Launch::fault(std::shared_ptr<const Fault> fault) {
  fault_ = std::move(fault);
  fault_position_ = next_++;
  return *this;
}

Launch& Launch::constant(const void* value, std::size_t bytes) {
  check(clSetKernelArg(kernel_.get(), next_++, bytes, value), "opencl::prepare", "clSetKernelArg");
  return *this;
}

Status Launch::set(const Binding& binding, const RunArguments& arguments) const {
  void* memory = arguments.workspace;
  std::size_t bytes = binding.index, element = binding.element;
  if (binding.source != Source::workspace) {
    const auto& tensors = binding.source == Source::input ? arguments.inputs : arguments.outputs;
    const Tensor& tensor = *tensors[binding.index];
    memory = tensor.data();
    bytes = tensor.byte_offset();
    if (element == 0) element = size_of(tensor.dtype());
  }
  if (bytes % element != 0)
    return {ErrorCode::invalid_argument,
            "byte offset " + std::to_string(bytes) + " is not a multiple of the element size: copy the tensor first"};
  auto* buffer = static_cast<cl_mem>(memory);
  const cl_ulong start = bytes / element;
  const cl_int code = clSetKernelArg(kernel_.get(), binding.position, sizeof(cl_mem), &buffer);
  if (code != CL_SUCCESS) return to_status(code, "clSetKernelArg");
  return to_status(clSetKernelArg(kernel_.get(), binding.position + 1, sizeof(start), &start), "clSetKernelArg");
}

Status Launch::queue(cl_command_queue queue, const RunArguments& arguments) const {
  if (items_ == 0 || (unless_in_place_ && in_place(arguments, *unless_in_place_))) return {};
  for (const Binding& binding : bindings_) {
    if (Status status = set(binding, arguments); !status.ok()) return status;
  }
  const auto launch = [&] {
    return clEnqueueNDRangeKernel(queue, kernel_.get(), 1, nullptr, &items_, &local_, 0, nullptr, nullptr);
  };
  const auto launch_with = [&](cl_mem word) {
    const cl_int code = clSetKernelArg(kernel_.get(), fault_position_, sizeof(cl_mem), &word);
    return code == CL_SUCCESS ? launch() : code;
  };
  const auto enqueue = [&] { return fault_ ? fault_->launch(arguments.stream, launch_with) : launch(); };
  cl_int code = enqueue();
  if (code != CL_SUCCESS && error_code_of(code) == ErrorCode::out_of_memory && clFinish(queue) == CL_SUCCESS)
    code = enqueue();
  return to_status(code, "clEnqueueNDRangeKernel");
}

LaunchPlan::LaunchPlan(DeviceContext& device, std::string token, std::optional<std::uint64_t> workspace_bytes)
    : device_(device), token_(std::move(token)), workspace_bytes_(workspace_bytes) {}

LaunchPlan::LaunchPlan(const Problem& problem, const PrepareContext& context, Fill fill, std::string token,
                       std::optional<std::uint64_t> workspace_bytes)
    : LaunchPlan(context_of(context), std::move(token), workspace_bytes) {
  growing_.emplace(Growing{problem, context, std::move(fill)});
  growing_->fill(*this, problem, context);
}

Launch& LaunchPlan::add(const LaunchSpec& spec) {
  const std::size_t next = launches_.size();
  Launch* earlier = growing_ && next < growing_->earlier.size() ? &growing_->earlier[next] : nullptr;
  return launches_.emplace_back(device_, spec, earlier);
}

std::shared_ptr<const Fault> LaunchPlan::fault(const PrepareContext& context, const std::string& message) {
  auto& known = faults_[message];
  if (known == nullptr) known = context_of(context).make_fault(message);
  return known;
}

bool LaunchPlan::fits(const RunArguments& arguments) const {
  if (!growing_) return true;
  if (!growing_->filled) return false;
  const auto same = [](const std::vector<TensorSpec>& specs, std::span<const Tensor* const> tensors) {
    return std::equal(
        specs.begin(), specs.end(), tensors.begin(), tensors.end(),
        [](const auto& spec, const Tensor* t) { return spec.shape == t->shape() && spec.strides == t->strides(); });
  };
  return same(growing_->problem.inputs, arguments.inputs) && same(growing_->problem.outputs, arguments.outputs);
}

void LaunchPlan::fill_for(const RunArguments& arguments) {
  Growing& growing = *growing_;
  const auto take = [](std::vector<TensorSpec>& specs, std::span<const Tensor* const> tensors) {
    for (std::size_t i = 0; i < specs.size(); ++i)
      specs[i] = make_spec(specs[i].dtype, tensors[i]->shape(), tensors[i]->strides(), specs[i].alignment);
  };
  take(growing.problem.inputs, arguments.inputs);
  take(growing.problem.outputs, arguments.outputs);
  growing.filled = false;
  growing.earlier = std::exchange(launches_, {});
  growing.fill(*this, growing.problem, growing.context);
  growing.earlier.clear();
  growing.filled = true;
}

// Nothing is flushed here: a wait, a copy and an event that is recorded do so, and there is no other way to notice what
// the work did.
Status LaunchPlan::run(const RunArguments& arguments) const {
  if (Status status = usable_here(); !status.ok()) return status;
  const QueueUse queue = device_.use(arguments.stream);
  {
    const std::lock_guard lock(mutex_);
    if (!fits(arguments)) {
      try {
        const_cast<LaunchPlan*>(this)->fill_for(arguments);  // seen by nobody: under the lock
      } catch (const Error& error) {
        return {error.code(), error.what()};
      }
    }
    for (const Launch& launch : launches_) {
      if (Status status = launch.queue(queue, arguments); !status.ok()) return status;
    }
  }
  device_.launched(queue);
  return {};
}

}  // namespace xpuruntime::opencl
