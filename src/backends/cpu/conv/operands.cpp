#include "backends/cpu/conv/operands.h"

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/reduce/kernels.h"

namespace xpuruntime::cpu {

ConvOperands::ConvOperands(const Problem& problem)
    : weight_dtype_(problem.inputs[1].dtype), weight_count_(element_count(problem.inputs[1])) {
  if (problem.inputs.size() < 3) return;
  bias_dtype_ = problem.inputs[2].dtype;
  bias_count_ = element_count(problem.inputs[2]);
}

ConvOperands::Floats ConvOperands::carve(Carver& carver) const {
  Floats floats;
  if (weight_dtype_ != DataType::float32) floats.weight_room = carver.floats(weight_count_);
  if (bias_count_ != 0 && bias_dtype_ != DataType::float32) floats.bias_room = carver.floats(bias_count_);
  return floats;
}

void ConvOperands::fill(const RunArguments& arguments, int threads, Floats& floats) const {
  const std::byte* weight = arguments.inputs[1]->as<const std::byte>();
  floats.weight = arguments.inputs[1]->as<const float>();
  if (weight_dtype_ != DataType::float32) {
    constexpr std::int64_t grain = 1 << 16;
    const std::int64_t size = static_cast<std::int64_t>(size_of(weight_dtype_));
    parallel_for(weight_count_, grain, threads, [&](std::int64_t begin, std::int64_t end) {
      widen_floats(weight_dtype_, weight + begin * size, end - begin, floats.weight_room + begin);
    });
    floats.weight = floats.weight_room;
  }
  if (bias_count_ == 0) return;
  floats.bias = arguments.inputs[2]->as<const float>();
  if (bias_dtype_ == DataType::float32) return;
  widen_floats(bias_dtype_, arguments.inputs[2]->as<const std::byte>(), bias_count_, floats.bias_room);
  floats.bias = floats.bias_room;
}

void add_bias_gradient(const Problem& backward, Stages& stages) {
  if (backward.inputs.size() < 4) return;
  const StageTensor from = input_of(backward, 3), to = output_of(backward, 2);
  std::vector<std::int64_t> dims = {0};
  for (std::size_t i = 2; i < from.spec.shape.size(); ++i) dims.push_back(static_cast<std::int64_t>(i));
  const Problem sum = stage_problem(backward, Attributes(OpId::reduce_sum).set_list("dim", dims), {from}, to);
  stages.add(reduction_for(sum), sum, {from}, {to});
}

}  // namespace xpuruntime::cpu
