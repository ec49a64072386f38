#include "core/backward.h"

namespace xpuruntime {

Problem forward_of(const Problem& backward) {
  Problem forward = backward;
  forward.direction = Direction::forward;
  forward.outputs = {backward.inputs.back()};
  forward.inputs.pop_back();
  return forward;
}

std::optional<std::size_t> gradient_of(const Problem& backward, std::size_t input) {
  const OpInfo& info = op_info(backward.op);
  if (!has_gradient(info, input, backward.inputs[input].dtype)) return std::nullopt;
  std::size_t output = 0;
  for (std::size_t i = 0; i < input; ++i) output += has_gradient(info, i, backward.inputs[i].dtype) ? 1 : 0;
  return output;
}

}  // namespace xpuruntime
