#pragma once

#include <memory>
#include <vector>

#include "xpuruntime/registry/kernel.h"

// A call done by others: plans of forward kernels that run one after the other. Backward is mostly that.

namespace xpuruntime::cpu {

/// What a stage reads or writes: a tensor of the call, perhaps seen in another shape, or one in the workspace.
struct StageTensor {
  enum class Base : std::uint8_t { input, output, workspace };
  Base base = Base::workspace;
  std::uint64_t at = 0;  // which input or output, or the byte of the workspace
  TensorSpec spec = {};

  StageTensor seen_as(TensorSpec other) const { return {base, at, std::move(other)}; }
};

StageTensor input_of(const Problem& problem, std::size_t i);
StageTensor output_of(const Problem& problem, std::size_t i);

/// Stages in the order they run. They share the memory of their own workspaces.
class Stages {
 public:
  static constexpr std::size_t most_tensors = 4;  // that one stage reads or writes

  /// A contiguous tensor between stages.
  StageTensor room(DataType dtype, const Dims& shape);

  /// `problem` is that of the stage; its tensors have the specs of `inputs` and `outputs`. The row is not copied.
  void add(const KernelSpec& kernel, const Problem& problem, std::vector<StageTensor> inputs,
           std::vector<StageTensor> outputs);

  std::uint64_t workspace_bytes(const DeviceProfile& profile) const;
  std::unique_ptr<const Plan> prepare(const PrepareContext& context) const;

 private:
  struct Stage {
    const KernelSpec* kernel = nullptr;
    Problem problem = {};
    std::vector<StageTensor> inputs = {};
    std::vector<StageTensor> outputs = {};
  };
  class StagedPlan;

  std::vector<Stage> stages_;
  std::uint64_t room_bytes_ = 0;
};

/// A forward problem on these tensors, under the limits of the call they are part of.
Problem stage_problem(const Problem& call, const Attributes& attributes, const std::vector<StageTensor>& inputs,
                      const StageTensor& output);

}  // namespace xpuruntime::cpu
