#include "tune/reference.h"

#include <algorithm>

#include "core/elements.h"
#include "xpuruntime/device/workspace_pool.h"

namespace xpuruntime {
namespace {

DataType reference_dtype(DataType dtype) { return is_floating(dtype) ? DataType::float64 : dtype; }

/// A contiguous copy on the host, floats as float64.
Tensor widened(const DeviceManager& devices, const Tensor& tensor) {
  const Tensor host = devices.copy_to(tensor, Device{});
  if (!is_floating(tensor.dtype()) || tensor.dtype() == DataType::float64) return host;
  Tensor wide = Tensor::empty(DataType::float64, tensor.shape());
  const std::size_t size = size_of(host.dtype());
  const auto count = static_cast<std::size_t>(element_count(host.spec()));
  for (std::size_t i = 0; i < count; ++i) {
    wide.as<double>()[i] = load_element(host.dtype(), host.as<const std::byte>() + i * size);
  }
  return wide;
}

Operands wide_operands(const DeviceManager& devices, const std::vector<Tensor>& inputs,
                       const std::vector<Tensor>& outputs) {
  std::vector<Tensor> wide_inputs;
  std::vector<Tensor> wide_outputs;
  for (const Tensor& input : inputs) wide_inputs.push_back(widened(devices, input));
  for (const Tensor& output : outputs) {
    wide_outputs.push_back(Tensor::empty(reference_dtype(output.dtype()), output.shape()));
  }
  return {std::move(wide_inputs), std::move(wide_outputs)};
}

/// The problem that these tensors are.
Problem problem_on(const Problem& problem, const Operands& operands) {
  Problem on = problem;
  on.device = {};
  on.limits = {};
  for (std::size_t i = 0; i < on.inputs.size(); ++i) on.inputs[i] = operands.inputs()[i].spec();
  for (std::size_t i = 0; i < on.outputs.size(); ++i) on.outputs[i] = operands.outputs()[i].spec();
  return on;
}

std::shared_ptr<const Kernel> reference_kernel(const KernelRegistry& registry, OpId op) {
  const KernelList kernels = registry.kernels(op, DeviceType::cpu);
  const auto found =
      std::find_if(kernels.begin(), kernels.end(), [](const auto& kernel) { return kernel->name() == "reference"; });
  return found == kernels.end() ? nullptr : *found;
}

/// Runs the reference; returns why it cannot, or nothing.
std::string run_reference(const KernelRegistry& registry, const Problem& problem, const Operands& operands) {
  const auto kernel = reference_kernel(registry, problem.op);
  if (kernel == nullptr) return "the CPU backend has no reference kernel for " + std::string(to_string(problem.op));
  const std::string cannot = "the reference cannot run it in float64: ";
  const DeviceManager& devices = registry.devices();
  try {
    const DeviceProfile& profile = devices.profile(Device{});
    const Verdict verdict = kernel->supports(problem, profile);
    if (!verdict.supported) return cannot + verdict.reason;
    const auto plan = kernel->prepare(problem, {Device{}, profile, devices.driver(Device{})});
    const auto lease = devices.workspace(Device{}).acquire(kernel->workspace_bytes(problem, profile), {});
    const Status status = plan->run({operands.input_pointers(), operands.output_pointers(), lease.data(), {}});
    return status.ok() ? "" : cannot + status.message();
  } catch (...) {
    return cannot + exception_text();
  }
}

}  // namespace

Reference::Reference(const KernelRegistry& registry, const Problem& problem, const Operands& operands, double most_work)
    : registry_(registry), problem_(problem) {
  const double work = reference_work(problem);
  std::vector<Slice> slices = work <= most_work ? std::vector<Slice>(1) : slices_of(problem, most_work / 2 / work);
  if (work > most_work && slices.front().cuts.empty()) {
    skipped_ = "the float64 reference would take too long, and no part of the result can be computed on its own";
    return;
  }
  share_ = 0;
  for (const Slice& slice : slices) {
    Part part{slice, {}};
    skipped_ = run(operands, part);
    if (!skipped_.empty()) return;
    double share = 1;
    for (const Slice::Cut& cut : slice.cuts) {
      share *= static_cast<double>(cut.count) / static_cast<double>(cut.dimension.extent);
    }
    share_ += share;
    parts_.push_back(std::move(part));
  }
}

std::string Reference::run(const Operands& operands, Part& part) {
  const Operands wide = wide_operands(registry_.devices(), part.slice.of_inputs(operands.inputs()),
                                      part.slice.of_outputs(operands.outputs()));
  const Problem on = problem_on(problem_, wide);
  std::string why = run_reference(registry_, on, wide);
  if (!why.empty()) return why;
  part.expected = wide.outputs();
  const DataType in = problem_.inputs[0].dtype, out = problem_.outputs.back().dtype;
  // By digits, not by bytes: bf16 has fewer than f16.
  part.slack = slack_of({on, wide, epsilon_of(out) > epsilon_of(in) ? out : in, out, unit_roundoff(problem_),
                         [this](const Problem& other, const Operands& tensors) {
                           return run_reference(registry_, problem_on(other, tensors), tensors).empty();
                         }});
  return why;
}

Check Reference::compare_with(const std::vector<Tensor>& outputs, const Computation& computation) const {
  Check check;
  check.skipped = skipped_;
  if (!skipped_.empty()) return check;
  for (const Part& part : parts_) {
    const std::vector<Tensor> results = part.slice.of_outputs(outputs);
    for (std::size_t i = 0; i < results.size(); ++i) {
      compare(check, computation, registry_.devices().copy_to(results[i], Device{}), part.expected[i],
              {unit_roundoff(problem_), part.slack[i]});
    }
  }
  return check;
}

/// What lies outside the slices is like what lies inside: the same kind of numbers, the same number of terms.
double Reference::slack_outside(std::size_t output, const Tensor& values) const {
  constexpr double luck = 1.5;  // that the slices may have had
  double most = 0;
  for (const Part& part : parts_) {
    for (const double slack : part.slack[output]) most = std::max(most, luck * slack);
  }
  return parts_.empty() ? slack_of_largest(problem_, largest_of(values)) : most;
}

Check Reference::compare_both(const std::vector<Tensor>& outputs, const std::vector<Tensor>& others,
                              const Computation& computation) const {
  Check check;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const Slack slack(static_cast<std::size_t>(element_count(outputs[i].spec())), slack_outside(i, others[i]));
    compare(check, computation, outputs[i], others[i], {unit_roundoff(problem_), slack, 2});
  }
  return check;
}

}  // namespace xpuruntime
