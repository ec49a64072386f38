#include "xpuruntime/graph/quantize.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "core/printable.h"
#include "graph/quantize/ranges.h"
#include "graph/quantize/weights.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace quantization {
namespace {

[[noreturn]] void refuse(const std::string& message) { fail(ErrorCode::invalid_argument, "quantize", message); }

std::string name_of(const ModelNode& node, std::size_t index) {
  return node.name.empty() ? node.op + " #" + std::to_string(index) : node.name;
}

bool is_product(const ModelNode& node) {
  return node.domain.empty() && node.inputs.size() >= 2 && !node.outputs.empty() &&
         (node.op == "Conv" || node.op == "Gemm" || node.op == "MatMul");
}

template <class T>
T attribute(const ModelNode& node, std::string_view name, T otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<T>(&found->second);
  return value == nullptr ? otherwise : *value;
}

/// The axis of a weight's output channels.
std::size_t axis_of(const ModelNode& node) {
  return node.op == "Conv" || attribute<std::int64_t>(node, "transB", 0) != 0 ? 0 : 1;
}

/// Why a node stays in floats; empty: it need not.
std::string why_kept(const ModelNode& node, const Constants& constants, const QuantizeOptions& options) {
  if (std::find(options.keep.begin(), options.keep.end(), node.name) != options.keep.end()) return "it is to be kept";
  const auto weight = constants.find(node.inputs.at(1));
  if (!weight) return "its weight is no constant of f32";
  if (constants.find(node.inputs[0])) return "its input is a constant";
  if (node.op == "Conv") {
    if (weight->shape().size() < 3) return "its weight is no filter";
    const bool is_thin = attribute<std::int64_t>(node, "group", 1) > 1 && weight->shape()[1] < 4;
    return is_thin ? "its filters read fewer than 4 channels, which is faster in floats" : "";
  }
  if (weight->shape().size() != 2) return "its weight is no matrix";
  if (node.op == "MatMul") return "";
  const bool is_plain = attribute(node, "alpha", 1.0f) == 1.0f && attribute(node, "beta", 1.0f) == 1.0f &&
                        attribute<std::int64_t>(node, "transA", 0) == 0;
  return is_plain ? "" : "it scales or transposes its inputs";
}

struct Scale {
  float scale = 1;
  std::uint8_t zero = 0;
};

Scale scale_of(const Range& range) {
  const float scale = std::max((range.most - range.least) / 255, 1e-30f);
  if (range.most <= range.least) return {};
  return {scale, static_cast<std::uint8_t>(std::clamp(std::nearbyint(-range.least / scale), 0.0f, 255.0f))};
}

template <class T>
Tensor scalar(DataType dtype, T value) {
  const Tensor tensor = Tensor::empty(dtype, {});
  *tensor.as<T>() = value;
  return tensor.as_read_only();
}

/// Puts Q and DQ nodes around what products read.
class Rewriting {
 public:
  Rewriting(Model& model, const std::map<std::string, Range>& ranges)
      : model_(model),
        ranges_(ranges),
        // Scales for each channel are of opset 13; ONNX Runtime has the operators in a domain of its own for older
        // ones.
        domain_(model.opsets[""] < 13 ? "com.microsoft" : "") {
    if (!domain_.empty()) model.opsets.emplace(domain_, 1);
    for (const ModelNode& node : model.graph.nodes) {
      const bool is_relu = node.op == "Relu" && node.domain.empty() && node.inputs.size() == 1;
      if (is_relu && node.outputs.size() == 1) before_relu_[node.outputs[0]] = node.inputs[0];
    }
  }

  void run(const std::set<std::size_t>& chosen) {
    const Constants constants(model_.graph);
    std::map<std::size_t, Tensor> weights;
    for (const std::size_t i : chosen) weights[i] = constants.find(model_.graph.nodes[i].inputs[1]).value();
    std::vector<ModelNode> old = std::exchange(model_.graph.nodes, {});
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (chosen.contains(i)) {
        old[i].inputs[1] = weight(old[i], weights[i]);
        old[i].inputs[0] = input(old[i].inputs[0]);
      }
      nodes_.push_back(std::move(old[i]));
    }
    model_.graph.nodes = std::move(nodes_);
  }

 private:
  void add(const std::string& op, std::vector<std::string> inputs, const std::string& result, std::int64_t axis) {
    ModelNode node{.name = result + "/" + op, .op = op, .domain = domain_, .inputs = std::move(inputs)};
    node.outputs = {result};
    if (axis >= 0) node.attributes["axis"] = axis;
    nodes_.push_back(std::move(node));
  }

  std::string constant(const std::string& name, const Tensor& tensor) {
    model_.graph.constants[name] = tensor;
    return name;
  }

  std::string input(const std::string& name) {
    const std::string result = name + "/floats";
    if (!known_.insert(result).second) return result;
    const Scale scale = scale_of(ranges_.at(name));
    const std::string scale_name = constant(name + "/scale", scalar(DataType::float32, scale.scale));
    const std::string zero_name = constant(name + "/zero", scalar(DataType::uint8, scale.zero));
    // Codes from 0 on cut off what is negative, as relu does.
    const auto relu = before_relu_.find(name);
    const std::string& from = relu != before_relu_.end() && scale.zero == 0 ? relu->second : name;
    add("QuantizeLinear", {from, scale_name, zero_name}, name + "/codes", -1);
    add("DequantizeLinear", {name + "/codes", scale_name, zero_name}, result, -1);
    return result;
  }

  std::string weight(const ModelNode& node, const Tensor& values) {
    const std::string& name = node.inputs[1];
    const std::size_t axis = axis_of(node);
    const std::string base = name + "/by" + std::to_string(axis);
    if (!known_.insert(base).second) return base + "/floats";
    const Codes codes = codes_of(values, axis);
    const Tensor zeros = Tensor::empty(DataType::int8, codes.scales.shape());
    std::fill_n(zeros.as<std::int8_t>(), element_count(zeros.spec()), std::int8_t{0});
    add("DequantizeLinear",
        {constant(base + "/codes", codes.codes), constant(base + "/scales", codes.scales),
         constant(base + "/zeros", zeros.as_read_only())},
        base + "/floats", static_cast<std::int64_t>(axis));
    return base + "/floats";
  }

  Model& model_;
  const std::map<std::string, Range>& ranges_;
  const std::string domain_;
  std::map<std::string, std::string> before_relu_ = {};
  std::set<std::string> known_ = {};
  std::vector<ModelNode> nodes_ = {};
};

/// Lets go of what nothing reads any more: relus before codes, and weights in f32.
void drop_unread(ModelGraph& graph) {
  for (std::size_t left = graph.nodes.size() + 1; left != graph.nodes.size();) {
    left = graph.nodes.size();
    const auto reads = reads_of(graph);
    std::erase_if(graph.nodes, [&](const ModelNode& node) {
      return std::none_of(node.outputs.begin(), node.outputs.end(),
                          [&](const std::string& name) { return !name.empty() && reads.contains(name); });
    });
  }
  const auto reads = reads_of(graph);
  std::erase_if(graph.constants, [&](const auto& constant) { return !reads.contains(constant.first); });
}

}  // namespace
}  // namespace quantization

bool is_quantized(const Model& model) {
  return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(), [](const ModelNode& node) {
    return node.op.find("QuantizeLinear") != node.op.npos || node.op == "DequantizeLinear" ||
           node.op.starts_with("QLinear") || node.op.starts_with("MatMulInteger") || node.op == "ConvInteger" ||
           node.op == "DynamicQuantizeMatMul";
  });
}

QuantizedModel quantize(const Model& model, std::span<const std::vector<Tensor>> calibration, Dispatcher& dispatcher,
                        const DeviceManager& devices, const QuantizeOptions& options) {
  using namespace quantization;
  if (is_quantized(model)) refuse("the model is quantized already; run it as it is, with precision int8");
  if (calibration.empty()) refuse("there are no calibration inputs; give a few that are typical of the model's work");
  if (!(options.percentile > 0 && options.percentile <= 100)) {
    refuse("percentile is " + std::to_string(options.percentile) + "; give more than 0 and up to 100");
  }
  QuantizedModel result{model, {.inputs = calibration.size()}};
  ModelGraph& graph = result.model.graph;
  std::set<std::string> known;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {  // before nodes go
    graph.nodes[i].name = name_of(graph.nodes[i], i);
    known.insert(graph.nodes[i].name);
  }
  for (const std::string& name : options.keep) {
    if (!known.contains(name))
      refuse("the model has no node '" + printable(name) + "' to keep; Session.explain lists them");
  }
  fold_batch_norms(graph);
  const Constants constants(graph);
  std::set<std::size_t> chosen;
  std::set<std::string> names;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const ModelNode& node = graph.nodes[i];
    if (!is_product(node)) continue;
    const std::string kept = why_kept(node, constants, options);
    result.report.nodes.push_back({node.name, node.op, kept});
    if (!kept.empty()) continue;
    chosen.insert(i);
    names.insert(node.inputs[0]);
  }
  if (chosen.empty()) {
    const auto& nodes = result.report.nodes;
    refuse("the model has no Conv, Gemm or MatMul that can multiply integers" +
           (nodes.empty() ? std::string() : ": '" + printable(nodes[0].node) + "': " + nodes[0].kept) +
           "; run it in another precision");
  }
  const std::vector<std::string> watched(names.begin(), names.end());
  const auto ranges = ranges_of(result.model, watched, calibration, dispatcher, devices, options.percentile);
  Rewriting(result.model, ranges).run(chosen);
  drop_unread(graph);
  result.report.errors = errors_of(model, result.model, calibration, dispatcher, devices);
  return result;
}

}  // namespace xpuruntime
