#include "graph/native/graph_runs.h"

#include <algorithm>

#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {

GraphRuns::GraphRuns(const PieceContext& context)
    : context_(context),
      whole_(context.model, context.dispatcher, context.devices, context.device, context.execution, context.on_cpu),
      pieces_(context, context.model.graph, {}),
      in_pieces_(std::any_of(context.model.graph.nodes.begin(), context.model.graph.nodes.end(), is_control)) {}

std::shared_ptr<ReadyProgram> GraphRuns::find_whole(std::span<const Tensor> inputs) const {
  if (in_pieces_) return nullptr;
  try {
    return whole_.for_inputs(inputs);
  } catch (const NeedsValues&) {
    in_pieces_ = true;
    return nullptr;
  }
}

std::vector<Tensor> GraphRuns::run(std::span<const Tensor> inputs, const Deadline& deadline, const ProgramHook& hook,
                                   GivenOutputs outputs) const {
  if (const auto ready = find_whole(inputs)) {
    return hook ? hook(context_.model, ready, inputs, deadline) : ready->run(inputs, deadline, outputs);
  }
  std::vector<Tensor> results = pieces_.run(inputs, deadline, hook);
  for (std::size_t i = 0; i < results.size(); ++i) {  // the caller gets memory that nothing else has
    Tensor& result = results[i];
    check_declared_shape(context_.model.graph.outputs[i], result.shape(), false);  // the run found them
    const auto is_in_it = [&](const Tensor& other) { return other.data() == result.data(); };
    const bool is_taken = std::any_of(inputs.begin(), inputs.end(), is_in_it) ||
                          std::any_of(results.begin(), results.begin() + static_cast<std::ptrdiff_t>(i), is_in_it);
    if (!is_taken && !result.read_only()) continue;
    const Tensor own = context_.devices.allocate(make_spec(result.dtype(), result.shape()), result.device());
    const Tensor *from = &result, *to = &own;
    context_.dispatcher.dispatch({.op = OpId::copy, .inputs = {&from, 1}, .outputs = {&to, 1}});
    result = own;
  }
  return results;
}

void GraphRuns::each_program(std::span<const Tensor> inputs, const UseProgram& use) const {
  if (const auto ready = find_whole(inputs)) return use(context_.model, ready, inputs);
  std::vector<std::shared_ptr<ReadyProgram>> seen;
  const Deadline deadline(context_.execution.execution_timeout_ms, "execution_timeout_ms");
  pieces_.run(inputs, deadline, [&](const Model& piece, const auto& ready, auto given, const Deadline& until) {
    if (std::find(seen.begin(), seen.end(), ready) == seen.end()) {
      seen.push_back(ready);
      use(piece, ready, given);
    }
    return ready->run(given, until);
  });
}

std::shared_ptr<ReadyProgram> GraphRuns::for_specs(std::span<const TensorSpec> specs, const char* instead) const {
  if (in_pieces_) {
    fail(ErrorCode::not_supported, "Session",
         std::string("only a run tells what this model's loops and shapes are; ") + instead);
  }
  return whole_.for_specs(specs);
}

}  // namespace xpuruntime::native
