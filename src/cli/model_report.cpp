#include <algorithm>

#include "cli/model_engines.h"

namespace xpuruntime::cli {

ReportModel report_model(Context& context, const ModelRequest& request) {
  constexpr double budget_s = 1;
  constexpr std::int64_t runs = 20;
  const OpenedModel opened = open_model(context, request);
  ReportModel model{.name = request.path, .record = opened.session.record()};
  model.engines = time_engines(context, request.path, request.options, nullptr, budget_s).engines;
  const auto is_native = [](const EngineTime& time) { return time.engine == "native" && time.reason.empty(); };
  if (std::none_of(model.engines.begin(), model.engines.end(), is_native)) return model;
  ModelRequest native = request;
  native.options.engine = "native";
  const OpenedModel ours = open_model(context, native);
  const std::span<const Tensor> inputs(ours.inputs);
  model.steps = ours.session.explain(inputs);
  model.calls = ours.session.profile(inputs, runs).calls;
  model.memory_bytes = ours.session.memory_bytes(inputs);
  return model;
}

}  // namespace xpuruntime::cli
