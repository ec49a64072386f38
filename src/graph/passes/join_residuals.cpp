#include "graph/passes/match.h"
#include "graph/passes/passes.h"

namespace xpuruntime::native {

/// The sum is a result of the new call too: what reads it after the norm still can.
void join_residuals(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!program.is(i, OpId::rms_norm)) continue;
    const Step& norm = program.step(i);
    const std::size_t sum = program.maker(norm.inputs[0]);
    if (!program.is(sum, OpId::add)) continue;
    const Step& added = program.step(sum);
    Step with{.op = OpId::add_rms_norm, .attributes = Attributes(OpId::add_rms_norm), .inputs = added.inputs};
    with.inputs.insert(with.inputs.end(), norm.inputs.begin() + 1, norm.inputs.end());
    with.attributes.set_real("eps", norm.attributes.real("eps"));
    with.outputs = {norm.outputs[0], added.outputs[0]};
    const Steps steps = {sum, i};
    program.replace(steps, i, with);
  }
}

}  // namespace xpuruntime::native
