#include <map>

#include "cli/model_commands.h"
#include "cli/table.h"

namespace xpuruntime::cli {
namespace {

std::string text_of(const SessionStep& step, const Painter& paint) {
  std::string text =
      paint(Colour::bold, printable(step.node)) + " (" + printable(step.op) + ") " + to_string(step.output) + "\n";
  if (step.transfer) {
    return text + "  " + to_string(*step.transfer) + " from " + to_string(step.transfer->source) + ", " +
           std::to_string(step.transfer->bytes) + " bytes\n";
  }
  if (!step.decision) return text + "  " + std::string(to_string(step.kind)) + "\n";
  const Decision& decision = *step.decision;
  text += "  " + to_string(decision.problem) + "\n";
  text += paint(Colour::green, "  -> " + decision.kernel + " in " + std::string(to_string(decision.precision.forward)) +
                                   " [" + std::string(to_string(decision.level)) + "] " + printable(decision.because)) +
          "\n";
  if (!decision.casts.empty()) text += "  precision: " + printable(decision.precision.because) + "\n";
  if (!decision.plan.empty()) text += "  plan " + printable(decision.plan) + "\n";
  return text;
}

/// "3 calls (simd 2, small 1), 1 view"
std::string counts_text(const std::vector<SessionStep>& steps) {
  std::map<std::string, std::size_t> kernels;
  std::map<StepKind, std::size_t> kinds;
  for (const SessionStep& step : steps) {
    ++kinds[step.kind];
    if (step.decision) ++kernels[step.decision->kernel];
  }
  std::string by_kernel, text;
  for (const auto& [kernel, count] : kernels) {
    by_kernel += (by_kernel.empty() ? "" : ", ") + printable(kernel) + " " + std::to_string(count);
  }
  for (const auto& [kind, count] : kinds) {
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + std::string(to_string(kind)) +
            (count == 1 || kind == StepKind::fused ? "" : "s");
    if (kind == StepKind::kernel) text += " (" + by_kernel + ")";
  }
  return text.empty() ? "nothing is computed" : text;
}

/// Other engines than ours do not tell what becomes of each node.
Answer explain_engine(const Context& context, const ModelRequest& request, const SessionRecord& record) {
  if (!context.json) return {engine_text(record) + "\n"};
  const Json json = {{"version", 1}, {"model", request.path}, {"engine", engine_json(record)}};
  return {dump_json(json, 2) + "\n"};
}

}  // namespace

Answer explain_model(Context& context, const ModelRequest& request) {
  const OpenedModel opened = open_model(context, request);
  const std::span<const Tensor> inputs(opened.inputs);
  if (const auto& first = opened.session.record(); first.engine != "native") {
    return explain_engine(context, request, first);
  }
  const std::vector<SessionStep> steps = opened.session.explain(inputs);
  const SessionRecord& record = opened.session.record();  // with what runs on the fallback
  const std::uint64_t bytes = opened.session.memory_bytes(inputs);
  bool fine = true;
  for (const SessionStep& step : steps) fine = fine && (!step.decision || !step.decision->kernel.empty());
  if (context.json) {
    Json json = {{"version", 1}, {"model", request.path}, {"device", to_string(opened.device)}};
    json["engine"] = engine_json(record);
    json["steps"] = Json::array();
    for (const SessionStep& step : steps) json["steps"].push_back(step_json(step));
    json["memory_bytes"] = bytes;
    return {dump_json(json, 2) + "\n", fine ? exit_fine : exit_no};
  }
  std::string text;
  for (const SessionStep& step : steps) text += text_of(step, context.paint);
  text += "\n" + counts_text(steps) + " on " + to_string(opened.device) +
          "; memory between inputs and outputs: " + figure("%.1f kB", static_cast<double>(bytes) / 1e3) + "\n" +
          engine_text(record) + "\n";
  return {text, fine ? exit_fine : exit_no};
}

}  // namespace xpuruntime::cli
