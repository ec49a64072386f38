#include "graph/passes/match.h"
#include "graph/passes/passes.h"
#include "graph/passes/products.h"

namespace xpuruntime::native {
namespace {

/// What linear calls the activation; empty: it has none such.
std::string_view name_in_linear(const Step& step) {
  if (step.op == OpId::relu) return "relu";
  if (step.op == OpId::silu) return "silu";
  return step.op == OpId::gelu && step.attributes.choice("approximate") == "none" ? "gelu" : "";
}

}  // namespace

void join_activations(Rewriter& program) {
  for (std::size_t i = 0; i < program.size(); ++i) {
    if (!program.is_alive(i) || program.step(i).inputs.empty()) continue;
    const std::string_view name = name_in_linear(program.step(i));
    if (name.empty()) continue;
    const std::size_t maker = program.maker(program.step(i).inputs[0]);
    if (!program.is(maker, OpId::matmul) && !program.is(maker, OpId::linear)) continue;
    std::optional<Step> with = as_linear(program, maker);
    if (!with || !with->attributes.is_default("activation")) continue;
    with->attributes.set_choice("activation", name);
    with->outputs = program.step(i).outputs;
    const Steps steps = {maker, i};
    program.replace(steps, maker, *with);
  }
}

}  // namespace xpuruntime::native
