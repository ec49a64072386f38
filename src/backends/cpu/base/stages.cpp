#include "backends/cpu/base/stages.h"

#include <algorithm>
#include <array>

namespace xpuruntime::cpu {
namespace {

constexpr std::uint64_t line = 64;

std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + line - 1) / line * line; }

void* address_of(const StageTensor& tensor, const RunArguments& arguments) {
  switch (tensor.base) {
    case StageTensor::Base::input:
      return arguments.inputs[tensor.at]->as<void>();
    case StageTensor::Base::output:
      return arguments.outputs[tensor.at]->as<void>();
    case StageTensor::Base::workspace:
      break;
  }
  return static_cast<std::byte*>(arguments.workspace) + tensor.at;
}

/// The tensors of one stage in one call.
class BoundTensors {
 public:
  BoundTensors(const std::vector<StageTensor>& tensors, const RunArguments& arguments) : count_(tensors.size()) {
    for (std::size_t i = 0; i < count_; ++i) {
      tensors_[i] = Tensor(address_of(tensors[i], arguments), tensors[i].spec);
      pointers_[i] = &tensors_[i];
    }
  }
  std::span<const Tensor* const> list() const { return {pointers_.data(), count_}; }

 private:
  std::size_t count_;
  std::array<Tensor, Stages::most_tensors> tensors_;
  std::array<const Tensor*, Stages::most_tensors> pointers_ = {};
};

}  // namespace

class Stages::StagedPlan final : public Plan {
 public:
  StagedPlan(const Stages& stages, const PrepareContext& context)
      : list_(stages.stages_), scratch_(stages.room_bytes_) {
    for (const Stage& stage : list_) plans_.push_back(stage.kernel->prepare(stage.problem, context));
  }

  Status run(const RunArguments& arguments) const override {
    for (std::size_t i = 0; i < list_.size(); ++i) {
      const BoundTensors inputs(list_[i].inputs, arguments), outputs(list_[i].outputs, arguments);
      void* workspace = static_cast<std::byte*>(arguments.workspace) + scratch_;
      const Status status = plans_[i]->run({inputs.list(), outputs.list(), workspace, arguments.stream});
      if (!status.ok()) return status;
    }
    return {};
  }

  std::string token() const override {
    std::string all;
    for (const auto& plan : plans_) {
      const std::string one = plan->token();
      if (!one.empty()) all += (all.empty() ? "" : ", ") + one;
    }
    return all;
  }

 private:
  std::vector<Stage> list_;
  std::vector<std::unique_ptr<const Plan>> plans_;
  std::uint64_t scratch_;
};

StageTensor input_of(const Problem& problem, std::size_t i) { return {StageTensor::Base::input, i, problem.inputs[i]}; }
StageTensor output_of(const Problem& problem, std::size_t i) {
  return {StageTensor::Base::output, i, problem.outputs[i]};
}

StageTensor Stages::room(DataType dtype, const Dims& shape) {
  const StageTensor tensor = {StageTensor::Base::workspace, room_bytes_, make_spec(dtype, shape)};
  room_bytes_ += whole_lines(span_bytes(tensor.spec));
  return tensor;
}

void Stages::add(const KernelSpec& kernel, const Problem& problem, std::vector<StageTensor> inputs,
                 std::vector<StageTensor> outputs) {
  stages_.push_back({&kernel, problem, std::move(inputs), std::move(outputs)});
}

std::uint64_t Stages::workspace_bytes(const DeviceProfile& profile) const {
  std::uint64_t most = 0;
  for (const Stage& stage : stages_) {
    if (stage.kernel->workspace_bytes == nullptr) continue;
    most = std::max(most, stage.kernel->workspace_bytes(stage.problem, profile));
  }
  return room_bytes_ + most;
}

std::unique_ptr<const Plan> Stages::prepare(const PrepareContext& context) const {
  return std::make_unique<StagedPlan>(*this, context);
}

Problem stage_problem(const Problem& call, const Attributes& attributes, const std::vector<StageTensor>& inputs,
                      const StageTensor& output) {
  std::vector<TensorSpec> specs;
  for (const StageTensor& tensor : inputs) specs.push_back(tensor.spec);
  Problem problem = make_problem(attributes.op(), std::move(specs), attributes, call.device);
  set_outputs(problem, {output.spec});
  problem.limits = call.limits;
  return problem;
}

}  // namespace xpuruntime::cpu
