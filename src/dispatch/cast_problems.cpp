#include "dispatch/cast_problems.h"

namespace xpuruntime {

std::vector<CastProblem> cast_problems(const Problem& asked, const Problem& inner) {
  std::vector<CastProblem> casts;
  const auto add = [&](bool is_output, std::size_t index, const TensorSpec& from, const TensorSpec& to) {
    if (from.dtype == to.dtype) return;
    Problem cast =
        make_problem(OpId::cast, {from}, Attributes(OpId::cast).parse("dtype", to_string(to.dtype)), asked.device);
    set_outputs(cast, {to});
    cast.limits = asked.limits;
    casts.push_back({is_output, index, std::move(cast)});
  };
  for (std::size_t i = 0; i < asked.inputs.size(); ++i) add(false, i, asked.inputs[i], inner.inputs[i]);
  for (std::size_t i = 0; i < asked.outputs.size(); ++i) add(true, i, inner.outputs[i], asked.outputs[i]);
  return casts;
}

}  // namespace xpuruntime
