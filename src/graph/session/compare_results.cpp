#include "graph/session/compare_results.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "core/elements.h"

namespace xpuruntime {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Where an element lies, counted in elements.
std::int64_t place_of(const TensorSpec& spec, std::int64_t index) {
  if (spec.contiguous) return index;
  std::int64_t place = 0;
  for (std::size_t axis = spec.shape.size(); axis-- > 0;) {
    place += index % spec.shape[axis] * spec.strides[axis];
    index /= spec.shape[axis];
  }
  return place;
}

template <class Load>
auto element(Load load, const Tensor& tensor, std::int64_t index) {
  return load(tensor.as<const void>(), place_of(tensor.spec(), index));
}

double difference_of_floats(const Tensor& expected, const Tensor& found, double least_magnitude) {
  const LoadElement load = loader_of(expected.dtype());
  double most = 0, largest = std::max(least_magnitude, std::numeric_limits<double>::min());
  for (std::int64_t i = 0; i < element_count(expected.spec()); ++i) {
    const double want = element(load, expected, i), got = element(load, found, i);
    if (std::isfinite(want)) largest = std::max(largest, std::fabs(want));
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    const double difference = std::fabs(want - got);
    if (!std::isfinite(difference)) return infinite;
    most = std::max(most, difference);
  }
  return most / largest;
}

double share_that_differs(const Tensor& expected, const Tensor& found) {
  const LoadInteger load = integer_loader_of(expected.dtype());
  const std::int64_t count = element_count(expected.spec());
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    differ += element(load, expected, i) != element(load, found, i) ? 1 : 0;
  }
  return count == 0 ? 0 : static_cast<double>(differ) / static_cast<double>(count);
}

bool is_coarse(DataType dtype) {
  const bool is_short = is_floating(dtype) && size_of(dtype) < 4;
  return is_short || dtype == DataType::int8 || dtype == DataType::uint8;
}

bool is_coarse(const ModelValue& value) { return value.dtype && is_coarse(*value.dtype); }

/// What of a graph, with its branches and bodies, says how its results may differ.
struct Traits {
  bool coarse = false, random = false;

  void add(const ModelGraph& graph) {
    for (const auto* values : {&graph.inputs, &graph.outputs}) {
      coarse = coarse || std::any_of(values->begin(), values->end(), [](const auto& one) { return is_coarse(one); });
    }
    for (const auto& [name, value] : graph.values) coarse = coarse || is_coarse(value);
    for (const auto& [name, tensor] : graph.constants) coarse = coarse || is_coarse(tensor.dtype());
    for (const ModelNode& node : graph.nodes) add(node);
  }
  void add(const ModelNode& node) {
    constexpr std::string_view drawing[] = {"RandomNormal",      "RandomNormalLike", "RandomUniform",
                                            "RandomUniformLike", "Multinomial",      "Bernoulli"};
    // Dropout draws where it is told that it trains.
    const bool trains = node.op == "Dropout" && node.inputs.size() > 2;
    random = random || trains || std::find(std::begin(drawing), std::end(drawing), node.op) != std::end(drawing);
    coarse = coarse || node.op == "QuantizeLinear" || node.op == "DynamicQuantizeLinear";
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<Tensor>(&value)) coarse = coarse || is_coarse(tensor->dtype());
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value)) add(**body);
      constexpr std::int64_t half = 10, bfloat = 16;  // ONNX's numbers
      const auto* type = std::get_if<std::int64_t>(&value);
      coarse = coarse || (node.op == "Cast" && name == "to" && type != nullptr && (*type == half || *type == bfloat));
    }
  }
};

double largest_of(const Tensor& tensor) {
  double largest = 0;
  const LoadElement load = loader_of(tensor.dtype());
  for (std::int64_t i = 0; i < element_count(tensor.spec()); ++i) {
    const double size = std::fabs(element(load, tensor, i));
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  return largest;
}

}  // namespace

double difference_of(std::span<const Tensor> expected, std::span<const Tensor> found, double least_magnitude) {
  if (expected.size() != found.size()) return infinite;
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].dtype() != found[i].dtype() || expected[i].shape() != found[i].shape()) return infinite;
    most =
        std::max(most, is_floating(expected[i].dtype()) ? difference_of_floats(expected[i], found[i], least_magnitude)
                                                        : share_that_differs(expected[i], found[i]));
  }
  return most;
}

std::optional<ResultBounds> result_bounds(const Model& model, DataType precision, std::span<const Tensor> inputs,
                                          const DeviceManager& devices) {
  Traits traits;
  traits.add(model.graph);
  if (traits.random) return {};
  double largest = 1;
  for (const Tensor& input : inputs) {
    if (is_floating(input.dtype())) largest = std::max(largest, largest_of(devices.copy_to(input, Device{})));
  }
  ResultBounds bounds;
  bounds.least_magnitude *= largest;
  if (traits.coarse || precision != DataType::float32) bounds.most_difference = 0.1;
  return bounds;
}

}  // namespace xpuruntime
