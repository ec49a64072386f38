#include <algorithm>

#include "cli/model_engines.h"

namespace xpuruntime::cli {

ReportModel report_model(Context& context, const ModelRequest& request) {
  constexpr double budget_s = 1;
  const OpenedModel opened = open_model(context, request);
  ReportModel model{.name = request.path, .record = opened.session.record()};
  model.engines = time_engines(context, request.path, request.options, nullptr, budget_s).engines;
  const auto is_native = [](const EngineTime& time) { return time.engine == "native" && time.reason.empty(); };
  if (std::none_of(model.engines.begin(), model.engines.end(), is_native)) return model;
  ModelRequest native = request;
  native.options.engine = "native";
  const OpenedModel ours = open_model(context, native);
  ReportModel nodes = xpuruntime::report_model(ours.session, ours.inputs);
  nodes.record = std::move(model.record);
  nodes.engines = std::move(model.engines);
  return nodes;
}

}  // namespace xpuruntime::cli
