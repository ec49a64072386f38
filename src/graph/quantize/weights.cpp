#include "graph/quantize/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

namespace xpuruntime::quantization {
namespace {

std::int64_t integer(const ModelNode& node, std::string_view name) {
  const auto found = node.attributes.find(name);
  const auto* value = found == node.attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return value == nullptr ? 0 : *value;
}

Tensor transposed(const Tensor& matrix) {
  const std::int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result = Tensor::empty(DataType::float32, {columns, rows});
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < columns; ++j) {
      result.as<float>()[j * rows + i] = matrix.as<const float>()[i * columns + j];
    }
  }
  return result;
}

void count_reads(const ModelGraph& graph, std::map<std::string, std::size_t>& reads) {
  for (const ModelNode& node : graph.nodes) {
    for (const std::string& input : node.inputs) ++reads[input];
    for (const auto& [name, value] : node.attributes) {
      const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
      if (body != nullptr) count_reads(**body, reads);
    }
  }
  for (const ModelValue& output : graph.outputs) ++reads[output.name];
}

struct Norm {
  Tensor scale, shift, mean, variance;
  float epsilon = 1e-5f;
};

std::optional<Norm> norm_of(const ModelNode& node, const Constants& constants, std::int64_t channels) {
  if (node.op != "BatchNormalization" || !node.domain.empty() || node.inputs.size() != 5) return {};
  if (integer(node, "training_mode") != 0 || node.outputs.empty()) return {};
  Norm norm;
  Tensor* const parts[] = {&norm.scale, &norm.shift, &norm.mean, &norm.variance};
  for (std::size_t i = 0; i < 4; ++i) {
    const auto part = constants.find(node.inputs[i + 1]);
    if (!part || part->shape() != Dims{channels}) return {};
    *parts[i] = *part;
  }
  const auto epsilon = node.attributes.find("epsilon");
  const auto* given = epsilon == node.attributes.end() ? nullptr : std::get_if<float>(&epsilon->second);
  if (given != nullptr) norm.epsilon = *given;
  return norm;
}

/// The convolution's weight and bias with a norm in them.
std::pair<Tensor, Tensor> folded(const Tensor& weight, const std::optional<Tensor>& bias, const Norm& norm) {
  Tensor filter = Tensor::empty(DataType::float32, weight.shape());
  Tensor sums = Tensor::empty(DataType::float32, {weight.shape()[0]});
  const std::int64_t size = element_count(weight.spec()) / std::max<std::int64_t>(weight.shape()[0], 1);
  for (std::int64_t c = 0; c < weight.shape()[0]; ++c) {
    const float factor = norm.scale.as<const float>()[c] / std::sqrt(norm.variance.as<const float>()[c] + norm.epsilon);
    for (std::int64_t i = c * size; i < (c + 1) * size; ++i) {
      filter.as<float>()[i] = weight.as<const float>()[i] * factor;
    }
    const float given = bias ? bias->as<const float>()[c] : 0;
    sums.as<float>()[c] = (given - norm.mean.as<const float>()[c]) * factor + norm.shift.as<const float>()[c];
  }
  return {filter.as_read_only(), sums.as_read_only()};
}

}  // namespace

Constants::Constants(const ModelGraph& graph) : graph_(graph) {
  for (const ModelNode& node : graph.nodes) {
    for (const std::string& output : node.outputs) makers_[output] = &node;
  }
}

std::optional<Tensor> Constants::find(const std::string& name) const {
  const auto usable = [](const Tensor& tensor) -> std::optional<Tensor> {
    if (tensor.dtype() != DataType::float32 || !tensor.contiguous()) return {};
    return tensor;
  };
  if (const auto found = graph_.constants.find(name); found != graph_.constants.end()) return usable(found->second);
  const auto maker = makers_.find(name);
  if (maker == makers_.end() || !maker->second->domain.empty()) return {};
  const ModelNode& node = *maker->second;
  if (node.op == "Constant") {
    const auto value = node.attributes.find("value");
    const auto* tensor = value == node.attributes.end() ? nullptr : std::get_if<Tensor>(&value->second);
    return tensor == nullptr ? std::nullopt : usable(*tensor);
  }
  if (node.inputs.size() != 1 || (node.op != "Identity" && node.op != "Transpose")) return {};
  const auto given = find(node.inputs[0]);
  if (!given || node.op == "Identity") return given;
  if (given->shape().size() != 2) return {};
  const auto perm = node.attributes.find("perm");
  const auto* dims = perm == node.attributes.end() ? nullptr : std::get_if<std::vector<std::int64_t>>(&perm->second);
  const bool stays = dims != nullptr && *dims == std::vector<std::int64_t>{0, 1};
  return stays ? *given : transposed(*given);
}

std::map<std::string, std::size_t> reads_of(const ModelGraph& graph) {
  std::map<std::string, std::size_t> reads;
  count_reads(graph, reads);
  return reads;
}

Codes codes_of(const Tensor& weight, std::size_t axis) {
  const Dims& shape = weight.shape();
  const std::int64_t slices = shape[axis];
  std::int64_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const std::int64_t count = element_count(weight.spec());
  const float* values = weight.as<const float>();
  Codes result{Tensor::empty(DataType::int8, shape), Tensor::empty(DataType::float32, {slices})};
  float* scales = result.scales.as<float>();
  std::fill_n(scales, slices, 0.0f);
  for (std::int64_t i = 0; i < count; ++i) {
    float& largest = scales[i / inner % slices];
    largest = std::max(largest, std::fabs(values[i]));
  }
  for (std::int64_t c = 0; c < slices; ++c) scales[c] = scales[c] > 0 ? std::max(scales[c] / 127, 1e-30f) : 1;
  for (std::int64_t i = 0; i < count; ++i) {
    const float code = std::nearbyint(values[i] / scales[i / inner % slices]);
    result.codes.as<std::int8_t>()[i] = static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f));
  }
  return {result.codes.as_read_only(), result.scales.as_read_only()};
}

void fold_batch_norms(ModelGraph& graph) {
  const std::map<std::string, std::size_t> reads = reads_of(graph);
  const Constants constants(graph);
  std::map<std::string, std::size_t> convolutions;  // by result
  std::set<std::size_t> gone;
  std::map<std::string, Tensor> made;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    ModelNode& node = graph.nodes[i];
    if (node.op == "Conv" && node.domain.empty() && node.inputs.size() > 1 && !node.outputs.empty())
      convolutions[node.outputs[0]] = i;
    const auto found = node.inputs.empty() ? convolutions.end() : convolutions.find(node.inputs[0]);
    if (found == convolutions.end() || reads.at(node.inputs[0]) != 1) continue;
    ModelNode& conv = graph.nodes[found->second];
    const auto weight = constants.find(conv.inputs[1]);
    const bool has_bias = conv.inputs.size() > 2 && !conv.inputs[2].empty();
    const auto bias = has_bias ? constants.find(conv.inputs[2]) : std::nullopt;
    if (!weight || weight->shape().size() < 3 || (has_bias && !bias)) continue;
    const auto norm = norm_of(node, constants, weight->shape()[0]);
    if (!norm) continue;
    const auto [filter, sums] = folded(*weight, bias, *norm);
    const std::string result = node.outputs[0];
    conv.inputs.resize(3);
    conv.inputs[1] = result + "/filter";
    conv.inputs[2] = result + "/bias";
    conv.outputs[0] = result;
    made[conv.inputs[1]] = filter;
    made[conv.inputs[2]] = sums;
    gone.insert(i);
  }
  for (auto& [name, tensor] : made) graph.constants[name] = tensor;
  std::vector<ModelNode> left;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!gone.contains(i)) left.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(left);
}

}  // namespace xpuruntime::quantization
