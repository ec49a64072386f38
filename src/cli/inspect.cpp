#include <map>

#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "core/printable.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::cli {
namespace {

struct InspectRequest {
  std::string model = {};
  std::vector<std::string> shapes = {};
  PolicyOptions policy = {};
};

/// "1,3,224,224"
Dims shape_from(const std::string& text, const std::string& whole) {
  std::vector<std::int64_t> extents;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string part = text.substr(at, end - at);
    const bool is_number =
        !part.empty() && part.size() < 16 && part.find_first_not_of("0123456789") == std::string::npos;
    if (!is_number || extents.size() == max_rank) {
      fail(ErrorCode::invalid_argument, "inspect",
           "--shape " + printable(whole) + " is not a name and at most 8 numbers; write it as x=1,3,224,224");
    }
    extents.push_back(std::stoll(part));
    at = end + 1;
  }
  return Dims(std::span(extents));
}

/// The shapes that the options give, by the names of inputs.
std::map<std::string, Dims> shapes_of(const InspectRequest& options, const Model& model) {
  std::map<std::string, Dims> shapes;
  std::vector<std::string_view> names;
  for (const ModelValue& input : model.graph.inputs) names.push_back(input.name);
  for (const std::string& whole : options.shapes) {
    const std::size_t equals = std::min(whole.rfind('='), whole.size());
    const std::string name = whole.substr(0, equals);
    if (std::find(names.begin(), names.end(), name) == names.end()) fail_unknown("inspect", "input", name, names);
    shapes[name] = shape_from(equals < whole.size() ? whole.substr(equals + 1) : "?", whole);
  }
  return shapes;
}

/// What the inputs are, where all of their extents are known.
std::optional<std::vector<TensorSpec>> specs_of(const InspectRequest& options, const Model& model) {
  const std::map<std::string, Dims> given = shapes_of(options, model);
  std::vector<TensorSpec> specs;
  for (const ModelValue& input : model.graph.inputs) {
    if (!input.dtype) return {};
    if (const auto found = given.find(input.name); found != given.end()) {
      specs.push_back(make_spec(*input.dtype, found->second));
      continue;
    }
    std::vector<std::int64_t> extents;
    if (!input.shape || input.shape->size() > max_rank) return {};
    for (const ModelExtent& extent : *input.shape) {
      if (extent.size < 0) return {};
      extents.push_back(extent.size);
    }
    specs.push_back(make_spec(*input.dtype, Dims(std::span(extents))));
  }
  return specs;
}

std::string value_text(const ModelValue& value) {
  std::string text;
  if (value.shape) {
    for (const ModelExtent& extent : *value.shape) {
      const std::string size = extent.size >= 0 ? std::to_string(extent.size) : extent.name.empty() ? "?" : extent.name;
      text += (text.empty() ? "" : ",") + size;
    }
  } else {
    text = "...";
  }
  return value.name + " " + (value.dtype ? std::string(to_string(*value.dtype)) : value.type) + "[" + text + "]";
}

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

std::uint64_t constant_bytes(const ModelGraph& graph) {
  std::uint64_t bytes = 0;
  for (const auto& [name, tensor] : graph.constants) bytes += span_bytes(tensor.spec());
  return bytes;
}

std::map<std::string, std::size_t> operators_of(const Model& model) {
  std::map<std::string, std::size_t> counts;
  for (const ModelNode& node : model.graph.nodes)
    ++counts[node.domain.empty() ? node.op : node.domain + "::" + node.op];
  return counts;
}

std::string missing_reason(const std::vector<MissingOp>& missing, const std::string& op) {
  for (const MissingOp& one : missing) {
    if (one.op == op) return one.reason;
  }
  return {};
}

/// What a model is, and what becomes of it here.
struct Inspected {
  Model model = {};
  std::vector<MissingOp> missing = {};
  bool is_planned = false;  // its shapes are known and its operators are here
  std::vector<SessionStep> steps = {};
  std::uint64_t memory_bytes = 0;
};

Inspected inspect_model(Context& context, const InspectRequest& options) {
  Inspected found{.model = load_onnx(options.model)};
  found.missing = missing_ops(found.model);
  const auto specs = specs_of(options, found.model);
  if (!found.missing.empty() || !specs) return found;
  Runtime& runtime = context.runtime();
  const Session session(found.model, runtime.dispatcher(), runtime.devices(),
                        {.policy = context.policy_of(options.policy.file)});
  found.steps = session.explain(*specs);
  found.memory_bytes = session.memory_bytes(*specs);
  found.is_planned = true;
  return found;
}

std::string because(const SessionStep& step) { return step.decision ? step.decision->because : ""; }
std::string runs_as(const SessionStep& step) {
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
  if (!found.is_planned) return text;
  Table steps({"node", "operator", "runs as", "output", "because"});
  for (const SessionStep& step : found.steps) {
    steps.add({step.node, step.op, runs_as(step), to_string(step.output), because(step)});
  }
  return text + "\n" + steps.to_text(paint) +
         "\nmemory between inputs and outputs: " + figure("%.1f kB", static_cast<double>(found.memory_bytes) / 1e3) +
         "\n";
}

Json step_json(const SessionStep& step) {
  Json json = {{"node", step.node}, {"operator", step.op}, {"kind", to_string(step.kind)}};
  json["output"] = to_string(step.output);
  json["decision"] = step.decision ? Json::parse(step.decision->to_json()) : Json();
  return json;
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
  return {context.json ? as_json(found) : as_text(found, context.paint), found.missing.empty() ? exit_fine : exit_no};
}

}  // namespace

void add_inspect(CLI::App& app, Context& context) {
  CLI::App& command = add_command(app, context, "inspect",
                                  "Say what an ONNX model is made of, and which kernel would run each of its nodes",
                                  "xrt inspect model.onnx --shape x=1,3,224,224");
  const auto options = std::make_shared<InspectRequest>();
  command.add_option("model", options->model, "An ONNX file")->type_name("FILE")->required();
  command.add_option("--shape", options->shapes, "The shape of an input that the model leaves open, as x=1,3,224,224")
      ->type_name("NAME=SHAPE")
      ->expected(1)
      ->take_all();
  options->policy.add_file_to(command);
  command.callback(
      [&context, options] { context.command = [&context, options] { return inspect(context, *options); }; });
}

}  // namespace xpuruntime::cli
