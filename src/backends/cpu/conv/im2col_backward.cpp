#include "backends/cpu/conv/im2col_backward.h"

#include <algorithm>

#include "backends/cpu/conv/kernels.h"
#include "core/backward.h"

namespace xpuruntime::cpu {
namespace {

Stages stages_of(const Problem& problem) {
  Stages stages;
  std::vector<StageTensor> inputs, outputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs.push_back(input_of(problem, i));
  for (std::size_t i = 0; i < problem.outputs.size(); ++i) outputs.push_back(output_of(problem, i));
  stages.add(conv_data_im2col, problem, inputs, outputs);
  stages.add(conv_weight_im2col, problem, inputs, outputs);
  add_bias_gradient(problem, stages);
  return stages;
}

}  // namespace

Im2colParts::Im2colParts(const Problem& backward)
    : shape(conv_shape(forward_of(backward))),
      threads(conv_threads(backward, shape)),
      positions(volume(shape.out)),
      gradient(backward.inputs.back().dtype) {
  constexpr std::int64_t column_floats = std::int64_t{1} << 18, longest = 1024;
  tile = std::clamp<std::int64_t>(positions, 1, longest);
  const std::int64_t taps = std::max<std::int64_t>(shape.taps(), 1);
  const std::int64_t fitting = std::max<std::int64_t>(column_floats / (taps * tile), 1);
  const std::int64_t tasks = std::max<std::int64_t>(shape.groups, 1);
  const std::int64_t shared = divide_up(shape.in_channels, divide_up(threads, tasks));
  channels = std::clamp<std::int64_t>(std::min(fitting, shared), 1, std::max<std::int64_t>(shape.in_channels, 1));
}

Verdict supports_conv_im2col_backward(const Problem& problem) {
  if (const Verdict verdict = is_contiguous(problem); !verdict.supported) return verdict;
  const Problem forward = forward_of(problem);
  if (const Verdict verdict = supports_modest_windows(forward); !verdict.supported) return verdict;
  return supports_conv_columns(conv_shape(forward));
}

std::uint64_t workspace_conv_im2col_backward(const Problem& problem, const DeviceProfile& profile) {
  return stages_of(problem).workspace_bytes(profile);
}

std::unique_ptr<const Plan> prepare_conv_im2col_backward(const Problem& problem, const PrepareContext& context) {
  return stages_of(problem).prepare(context);
}

}  // namespace xpuruntime::cpu
