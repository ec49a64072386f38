#include <algorithm>
#include <map>

#include "cli/commands.h"
#include "cli/model_engines.h"
#include "cli/model_options.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "core/printable.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::cli {
namespace {

struct InspectRequest {
  std::string model = {};
  bool engines = false;
  ModelOptions options = {};
  PolicyOptions policy = {};
};

Json value_json(const ModelValue& value) {
  Json json = {{"name", value.name}, {"dtype", value.dtype ? std::string(to_string(*value.dtype)) : value.type}};
  json["shape"] = nullptr;
  if (!value.shape) return json;
  json["shape"] = Json::array();
  for (const ModelExtent& extent : *value.shape) {
    json["shape"].push_back(extent.size >= 0 ? Json(extent.size) : extent.name.empty() ? Json() : Json(extent.name));
  }
  return json;
}

/// Calls `use` with each node, also of branches and bodies.
template <class Use>
void each_node(const ModelGraph& graph, const Use& use) {
  for (const ModelNode& node : graph.nodes) {
    use(node);
    for (const auto& [name, value] : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
      if (body != nullptr) each_node(**body, use);
    }
  }
}

std::uint64_t constant_bytes(const ModelGraph& graph) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : graph.constants) bytes += span_bytes(tensor.spec());
  for (const ModelNode& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<Tensor>(&value)) bytes += span_bytes(tensor->spec());
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value)) bytes += constant_bytes(**body);
    }
  }
  return bytes;
}

std::map<std::string, std::size_t> operators_of(const Model& model) {
  std::map<std::string, std::size_t> counts;
  each_node(model.graph,
            [&](const ModelNode& node) { ++counts[node.domain.empty() ? node.op : node.domain + "::" + node.op]; });
  return counts;
}

std::string missing_reason(const std::vector<MissingOp>& missing, const std::string& op) {
  for (const MissingOp& one : missing) {
    if (one.op == op) return one.reason;
  }
  return {};
}

/// Constants and inputs of types that no tensor here has.
std::string lacks_besides_operators(const Model& model, const std::vector<MissingOp>& missing) {
  const std::map<std::string, std::size_t> operators = operators_of(model);
  std::string text;
  for (const MissingOp& one : missing) {
    if (!operators.contains(one.op)) text += (text.empty() ? "" : "; ") + one.op + ": " + one.reason;
  }
  return text;
}

/// What a model is, and what becomes of it here.
struct Inspected {
  Model model = {};
  std::vector<MissingOp> missing = {};
  bool is_planned = false;  // its shapes are known and its operators are here
  std::string lacks = {};   // what the device has no kernels for, or types that no tensor has; empty: nothing
  std::vector<SessionStep> steps = {};
  std::uint64_t memory_bytes = 0;
  std::vector<EngineAnswer> engines = {};
};

Inspected inspect_model(Context& context, const InspectRequest& request) {
  Inspected found{.model = load_onnx(request.model)};
  found.missing = missing_ops(found.model);
  request.options.check_names(found.model);
  const bool is_foreign = request.options.names_other_engine(context);
  if (request.engines || is_foreign) found.engines = ask_engines(context, found.model, request.options);
  found.lacks = lacks_besides_operators(found.model, found.missing);
  if (!found.missing.empty() || is_foreign) return found;
  if (const std::string flaw = request.options.flaw_of_shapes(found.model); !flaw.empty()) {
    if (request.options.says_shapes()) fail(ErrorCode::invalid_argument, "xrt", flaw);
    return found;
  }
  ModelOptions native = request.options;  // the others do not tell
  native.engine = "native";
  const Session session = native.open(context, found.model, context.policy_of(request.policy.file));
  const std::vector<Tensor> inputs = request.options.tensors(session, context.runtime().devices());
  try {
    found.steps = session.explain(std::span(inputs));
  } catch (const EngineLacks& error) {
    found.lacks = std::string(error.message());
    return found;
  }
  found.memory_bytes = session.memory_bytes(std::span(inputs));
  found.is_planned = true;
  return found;
}

std::string because(const SessionStep& step) { return step.decision ? step.decision->because : ""; }
std::string runs_as(const SessionStep& step) {
  if (step.transfer) return to_string(*step.transfer);
  return step.decision ? step.decision->kernel : std::string(to_string(step.kind));
}

std::string as_text(const Inspected& found, const Painter& paint) {
  const Model& model = found.model;
  const auto opset = model.opsets.find("");
  std::string text = printable(model.path) + ": " + std::to_string(model.graph.nodes.size()) + " nodes, opset " +
                     (opset == model.opsets.end() ? "?" : std::to_string(opset->second)) + ", " +
                     figure("%.1f MB", static_cast<double>(constant_bytes(model.graph)) / 1e6) + " of constants" +
                     (model.producer.empty() ? "" : ", by " + printable(model.producer)) + "\n";
  for (const ModelValue& input : model.graph.inputs) text += "input   " + printable(value_text(input)) + "\n";
  for (const ModelValue& output : model.graph.outputs) text += "output  " + printable(value_text(output)) + "\n";
  Table operators({"operator", "nodes", "here"});
  for (const auto& [name, count] : operators_of(model)) {
    const std::string why = missing_reason(found.missing, name);
    operators.add({name, std::to_string(count), why.empty() ? "yes" : "no: " + why});
  }
  text += "\n" + operators.to_text(paint);
  if (!found.engines.empty()) {
    Table engines({"engine", "version", "takes the model"});
    for (const EngineAnswer& one : found.engines) {
      engines.add(
          {one.engine, one.version, one.reason.empty() ? "may: known when it compiles it" : "no: " + one.reason});
    }
    text += "\n" + engines.to_text(paint);
  }
  if (!found.lacks.empty()) text += "\n" + printable(found.lacks) + "\n";
  if (!found.is_planned) return text;
  Table steps({"node", "operator", "runs as", "output", "because"});
  for (const SessionStep& step : found.steps) {
    if (step.op == "Constant") continue;
    steps.add({step.node, step.op, runs_as(step), to_string(step.output), because(step)});
  }
  return text + "\n" + steps.to_text(paint) +
         "\nmemory between inputs and outputs: " + figure("%.1f kB", static_cast<double>(found.memory_bytes) / 1e3) +
         "\n";
}

std::string as_json(const Inspected& found) {
  const Model& model = found.model;
  Json json = {{"version", 1}, {"model", model.path}, {"producer", model.producer}};
  const auto opset = model.opsets.find("");
  json["opset"] = opset == model.opsets.end() ? Json() : Json(opset->second);
  json["constant_bytes"] = constant_bytes(model.graph);
  json["inputs"] = Json::array();
  for (const ModelValue& input : model.graph.inputs) json["inputs"].push_back(value_json(input));
  json["outputs"] = Json::array();
  for (const ModelValue& output : model.graph.outputs) json["outputs"].push_back(value_json(output));
  json["operators"] = Json::array();
  for (const auto& [name, count] : operators_of(model)) {
    const std::string why = missing_reason(found.missing, name);
    json["operators"].push_back({{"name", name}, {"nodes", count}, {"missing", why.empty() ? Json() : Json(why)}});
  }
  json["engines"] = Json::array();
  for (const EngineAnswer& one : found.engines) {
    json["engines"].push_back(
        {{"engine", one.engine}, {"version", one.version}, {"reason", one.reason.empty() ? Json() : Json(one.reason)}});
  }
  json["lacks"] = found.lacks.empty() ? Json() : Json(found.lacks);
  json["steps"] = Json();
  json["memory_bytes"] = Json();
  if (found.is_planned) {
    json["steps"] = Json::array();
    for (const SessionStep& step : found.steps) json["steps"].push_back(step_json(step));
    json["memory_bytes"] = found.memory_bytes;
  }
  return dump_json(json, 2) + "\n";
}

Answer inspect(Context& context, const InspectRequest& options) {
  const Inspected found = inspect_model(context, options);
  const bool fine = options.options.names_other_engine(context)
                        ? std::all_of(found.engines.begin(), found.engines.end(),
                                      [](const EngineAnswer& one) { return one.reason.empty(); })
                        : found.missing.empty() && found.lacks.empty();
  return {context.json ? as_json(found) : as_text(found, context.paint), fine ? exit_fine : exit_no};
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App& command = add_command(app, context, "inspect",
                                  "Say what an ONNX model is made of, and which kernel would run each of its nodes",
                                  "xrt inspect model.onnx --shape x=1,3,224,224");
  const auto options = std::make_shared<InspectRequest>();
  command.add_option("model", options->model, "An ONNX file")->type_name("FILE")->required();
  options->options.add_to(command);
  command.add_flag("--engines", options->engines,
                   "Ask every other engine whether it takes the model, or that of --engine");
  options->policy.add_file_to(command);
  command.callback(
      [&context, options] { context.command = [&context, options] { return inspect(context, *options); }; });
}

}  // namespace xpuruntime::cli
