#include "backends/cpu/plan_run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace xpuruntime::cpu_tests {

PlanRun run_plan(const Kernel& kernel, const Problem& problem, const oracle::Case& run, const Place& place,
                 PreparedFor prepared_for) {
  std::vector<Tensor> tensors;
  const auto add = [&](const TensorSpec& spec, const std::vector<std::byte>& bytes) {
    std::byte* const memory = place(tensors.size(), bytes.size(), spec.alignment);
    if (!bytes.empty()) std::memcpy(memory, bytes.data(), bytes.size());
    tensors.emplace_back(memory, spec);
  };
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    add(problem.inputs[i], run.input_bytes()[i]);
  }
  for (const TensorSpec& spec : problem.outputs) {
    add(spec, std::vector<std::byte>(span_bytes(spec), oracle::output_poison));
  }
  const auto all = oracle::pointers(tensors);
  const std::span<const Tensor* const> inputs(all.data(), problem.inputs.size());
  const std::span<const Tensor* const> outputs(all.data() + problem.inputs.size(), problem.outputs.size());

  const auto workspace_bytes = static_cast<std::size_t>(kernel.workspace_bytes(problem, cpu_profile()));
  std::byte* workspace = nullptr;
  if (workspace_bytes > 0) {
    workspace = place(tensors.size(), workspace_bytes, workspace_alignment);
    std::memset(workspace, 0xff, workspace_bytes);  // nothing there may be taken for a number
  }
  const PrepareContext context{problem.device, cpu_profile(), Runtime::global().devices().driver(problem.device)};
  const Problem any =
      prepared_for == PreparedFor::the_problem ? problem : kernel.plan_problem(problem).value_or(problem);
  PlanRun out;
  const auto plan = kernel.prepare(any, context);
  std::unique_ptr<const Plan> held;
  if (prepared_for == PreparedFor::constants) {
    std::vector<Tensor> read_only;  // as those of a model
    for (const Tensor* input : inputs) read_only.push_back(input->as_read_only());
    std::vector<const Tensor*> constants;
    for (const Tensor& tensor : read_only) constants.push_back(&tensor);
    constants[0] = nullptr;
    held = plan->with_constants(constants);
  }
  out.holds_constants = held != nullptr;
  out.status = (held != nullptr ? *held : *plan).run({inputs, outputs, workspace, {}});
  for (const Tensor* tensor : outputs) {
    const auto* bytes = tensor->as<const std::byte>();
    out.outputs.emplace_back(bytes, bytes + span_bytes(tensor->spec()));
  }
  return out;
}

std::string compare(const PlanRun& run, const Kernel& kernel, const oracle::Case& one) {
  if (!run.status.ok()) return run.status.message();
  oracle::Result result{std::string(kernel.name()), {}};
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const TensorSpec& spec = one.problem().outputs[i];
    result.values.push_back(oracle::elements(spec, run.outputs[i].data()));
    result.strayed |= !oracle::gaps_untouched(spec, run.outputs[i].data());
  }
  return one.compare(result);
}

KernelList cpu_kernels(OpId op) { return Runtime::global().registry().kernels(op, DeviceType::cpu); }

const DeviceProfile& cpu_profile() { return Runtime::global().devices().profile(Device{}); }

void for_each_subject(const std::function<void(const Kernel&, const oracle::Case&)>& use) {
  for (const cases::CaseText& text : cases::to_run()) {
    const Problem problem = parse_problem(text.problem);
    for (const auto& kernel : cpu_kernels(problem.op)) {
      if (!kernel->supports(problem, cpu_profile()).supported) continue;
      use(*kernel, *oracle::case_of(text.problem, Device{}, text.fill));
    }
  }
}

std::string text_of(const Kernel& kernel, const Problem& problem) {
  return std::string(to_string(kernel.op())) + " " + std::string(kernel.name()) + " on " + to_string(problem);
}

void FirstFailures::add(const Kernel& kernel, const std::string& what) {
  const std::string name = std::string(to_string(kernel.op())) + " " + std::string(kernel.name());
  const auto known = std::find_if(kernels_.begin(), kernels_.end(), [&](const auto& k) { return k.first == name; });
  if (known != kernels_.end()) {
    ++known->second;
    return;
  }
  kernels_.emplace_back(name, 1);
  ADD_FAILURE() << what;
}

FirstFailures::~FirstFailures() {
  for (const auto& [name, count] : kernels_) ADD_FAILURE() << name << " failed " << count << " times";
}

}  // namespace xpuruntime::cpu_tests
