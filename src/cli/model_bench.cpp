#include <algorithm>

#include "cli/model_commands.h"
#include "cli/model_engines.h"
#include "cli/model_timing.h"
#include "cli/table.h"

namespace xpuruntime::cli {
namespace {

/// A call of the model, and its time in the median of some runs.
struct NodeTime {
  SessionStep step = {};
  std::vector<double> runs_us = {};
  double time_us = 0;
};

/// The calls of one run, as the log has them, to the nodes that made them: nodes of one problem are called in order.
void add_times(const std::vector<LogEntry>& log, std::vector<NodeTime>& nodes, std::size_t run) {
  for (const LogEntry& entry : log) {
    const auto made_it = [&](const NodeTime& node) {
      return node.runs_us.size() < run && node.step.decision->problem == entry.decision->problem;
    };
    const auto node = std::find_if(nodes.begin(), nodes.end(), made_it);
    if (node != nodes.end()) node->runs_us.push_back(entry.elapsed_us);
  }
}

/// The slowest first. In runs of their own: writing the log takes time too.
std::vector<NodeTime> node_times(Context& context, const OpenedModel& opened, std::size_t runs) {
  std::vector<NodeTime> nodes;
  for (SessionStep& step : opened.session.explain(std::span<const Tensor>(opened.inputs))) {
    if (step.decision) nodes.push_back({std::move(step)});
  }
  Dispatcher& dispatcher = context.runtime().dispatcher();
  std::vector<Tensor> results;
  for (std::size_t run = 1; run <= runs; ++run) {
    dispatcher.enable_logging(4 * nodes.size() + 16);  // casts have entries too
    timed_run(context, opened.session, opened.inputs, opened.device, results);
    dispatcher.disable_logging();
    add_times(dispatcher.logs(), nodes, run);
    dispatcher.clear_logs();
  }
  std::erase_if(nodes, [](const NodeTime& node) { return node.runs_us.empty(); });
  for (NodeTime& node : nodes) node.time_us = ModelTimes{.runs_us = node.runs_us}.median_us();
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const NodeTime& a, const NodeTime& b) { return a.time_us > b.time_us; });
  return nodes;
}

double sum_of(const std::vector<NodeTime>& nodes) {
  double sum = 0;
  for (const NodeTime& node : nodes) sum += node.time_us;
  return sum;
}

std::string as_text(const ModelRequest& request, const EngineTimes& times, const std::vector<NodeTime>& nodes,
                    const Painter& paint) {
  std::string text = paint(Colour::bold, printable(request.path)) + "\n" + engines_text(times, paint);
  if (nodes.empty()) return text + fastest_text(times, paint);
  const double sum = sum_of(nodes);
  Table table({"node", "operator", "problem", "kernel", "time", "share"});
  constexpr std::size_t most = 20;  // of a terminal's page
  for (const NodeTime& node : std::span(nodes).first(std::min(most, nodes.size()))) {
    table.add({node.step.node, node.step.op, to_string(node.step.decision->problem), node.step.decision->kernel,
               duration_of_us(node.time_us), figure("%.1f %%", 100 * node.time_us / std::max(sum, 1e-9))});
  }
  if (nodes.size() > most) table.add({"... " + std::to_string(nodes.size() - most) + " more", "", "--json lists all"});
  return text + "\n" + table.to_text(paint) + std::to_string(nodes.size()) + (nodes.size() == 1 ? " call" : " calls") +
         " of native in " + duration_of_us(sum) + "\n\n" + fastest_text(times, paint);
}

std::string as_json(const ModelRequest& request, const EngineTimes& times, const std::vector<NodeTime>& nodes) {
  Json json = {{"version", 1}, {"model", request.path}, {"engines", engines_json(times)}};
  json["nodes"] = Json::array();
  for (const NodeTime& node : nodes) {
    json["nodes"].push_back({{"node", node.step.node},
                             {"operator", node.step.op},
                             {"problem", to_string(node.step.decision->problem)},
                             {"kernel", node.step.decision->kernel},
                             {"time_us", node.time_us}});
  }
  return dump_json(json, 2) + "\n";
}

/// Those of native, if it takes the model and is not left out.
std::vector<NodeTime> native_node_times(Context& context, ModelRequest request, const EngineTimes& times) {
  const auto& engines = times.engines;
  const auto native = std::find_if(engines.begin(), engines.end(), [](const EngineTime& time) {
    return time.engine == "native" && time.reason.empty();
  });
  if (native == engines.end()) return {};
  request.options.engine = "native";
  constexpr std::int64_t most = 15;
  return node_times(context, open_model(context, request), static_cast<std::size_t>(std::min(native->runs, most)));
}

}  // namespace

Answer bench_model(Context& context, const ModelRequest& request, double budget_s) {
  const ScopedPolicy scope(context.runtime().dispatcher(), context.policy_of(request.policy.file));
  const EngineTimes times = time_engines(context, request.path, request.options, nullptr, budget_s);
  const std::vector<NodeTime> nodes = native_node_times(context, request, times);
  return {context.json ? as_json(request, times, nodes) : as_text(request, times, nodes, context.paint),
          times.chosen.empty() ? exit_no : exit_fine};
}

}  // namespace xpuruntime::cli
