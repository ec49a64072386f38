#include "graph/native/graph_runs.h"

#include <algorithm>

#include "graph/native/lowering.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {

GraphRuns::GraphRuns(const PieceContext& context)
    : context_(context),
      whole_(context.model, context.dispatcher, context.devices, context.device, context.execution),
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

std::vector<Tensor> GraphRuns::run(std::span<const Tensor> inputs, const Deadline& deadline) const {
  if (const auto ready = find_whole(inputs)) return ready->run(inputs, deadline);
  std::vector<Tensor> results = pieces_.run(inputs, deadline, {});
  for (Tensor& result : results) {  // the caller gets memory that nothing else has
    const bool is_given =
        std::any_of(inputs.begin(), inputs.end(), [&](const Tensor& input) { return input.data() == result.data(); });
    if (!is_given && !result.read_only()) continue;
    const Tensor own = context_.devices.allocate(make_spec(result.dtype(), result.shape()), result.device());
    const Tensor *from = &result, *to = &own;
    context_.dispatcher.dispatch({.op = OpId::copy, .inputs = {&from, 1}, .outputs = {&to, 1}});
    result = own;
  }
  return results;
}

void GraphRuns::each_program(std::span<const Tensor> inputs, const ProgramHook& use) const {
  if (const auto ready = find_whole(inputs)) return use(context_.model, ready, inputs);
  std::vector<std::shared_ptr<ReadyProgram>> seen;
  const Deadline deadline(context_.execution.execution_timeout_ms, "execution_timeout_ms");
  pieces_.run(inputs, deadline, [&](const Model& piece, const auto& ready, std::span<const Tensor> given) {
    if (std::find(seen.begin(), seen.end(), ready) != seen.end()) return;
    seen.push_back(ready);
    use(piece, ready, given);
  });
}

void GraphRuns::check_whole(const char* instead) const {
  if (!in_pieces_) return;
  fail(ErrorCode::not_supported, "Session",
       std::string("only a run tells what this model's loops and shapes are; ") + instead);
}

std::shared_ptr<ReadyProgram> GraphRuns::for_specs(std::span<const TensorSpec> specs, const char* instead) const {
  check_whole(instead);
  return whole_.for_specs(specs);
}

std::shared_ptr<ReadyProgram> GraphRuns::for_inputs(std::span<const Tensor> inputs, const char* instead) const {
  auto ready = find_whole(inputs);
  check_whole(instead);
  return ready;
}

}  // namespace xpuruntime::native
