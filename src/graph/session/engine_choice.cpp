#include "graph/session/engine_choice.h"

#include "core/sha256.h"

namespace xpuruntime {
namespace {

/// All of a model that times may depend on.
class Digest {
 public:
  void add(const ModelGraph& graph) {
    for (const ModelValue& value : graph.inputs) add(value);
    for (const ModelValue& value : graph.outputs) add(value);
    for (const ModelNode& node : graph.nodes) {
      add(node.op + " " + node.domain);
      for (const std::string& name : node.inputs) add(name);
      for (const std::string& name : node.outputs) add(name);
      for (const auto& [name, value] : node.attributes) {
        add(name);
        std::visit([this](const auto& held) { add(held); }, value);
      }
    }
    for (const auto& [name, type] : graph.unread_constants) add(name + " " + type);
    for (const auto& [name, tensor] : graph.constants) {
      add(name);
      add(tensor);
    }
  }
  std::string finish() { return sum_.finish(); }

 private:
  void add(std::monostate) { add(std::string()); }
  void add(const std::string& text) { sum_.add(std::to_string(text.size()) + ":" + text); }
  void add(std::int64_t number) { add(std::to_string(number)); }
  void add(float number) { add(std::to_string(number)); }
  void add(const Tensor& tensor) {
    constexpr std::size_t small = 4096;
    add(to_string(tensor.spec()));
    if (tensor.span() <= small) sum_.add(std::span(tensor.as<const std::byte>(), tensor.span()));
  }
  void add(const std::shared_ptr<const ModelGraph>& graph) { add(*graph); }
  void add(const ModelValue& value) {
    add(value.name + " " + value.type);
    for (const ModelExtent& extent : value.shape.value_or(std::vector<ModelExtent>())) {
      add(extent.size);
      add(extent.name);
    }
  }
  template <class T>
  void add(const std::vector<T>& list) {
    for (const T& one : list) add(one);
  }

  Sha256 sum_ = {};
};

}  // namespace

std::string structure_of_model(const Model& model) {
  Digest digest;
  digest.add(model.graph);
  return digest.finish();
}

std::string name_in_store(const Model& model, const ExecutionPolicy& execution, int threads,
                          const std::vector<TensorSpec>* inputs) {
  std::string shapes = inputs == nullptr ? "any shapes" : "";
  for (std::size_t i = 0; inputs != nullptr && i < inputs->size(); ++i) {
    shapes += (i == 0 ? "" : ", ") + to_string((*inputs)[i]);
  }
  return "model " + structure_of_model(model).substr(0, 32) + "(" + shapes + ") @" +
         std::string(to_string(execution.target)) +
         " precision=" + std::string(engine_precision_name(execution.precision)) +
         " optimize_level=" + std::to_string(execution.optimize_level) +
         (threads == 0 ? "" : " threads=" + std::to_string(threads));
}

std::optional<std::vector<TensorSpec>> fixed_inputs(const Model& model, const ExecutionPolicy& execution) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < model.graph.inputs.size(); ++i) {
    const ModelValue& input = model.graph.inputs[i];
    std::vector<std::int64_t> shape;
    if (execution.static_shape && i < execution.fixed_shapes.size()) {
      shape = execution.fixed_shapes[i];
    } else if (input.shape) {
      for (const ModelExtent& extent : *input.shape) shape.push_back(extent.size);
    } else {
      return {};
    }
    for (const std::int64_t extent : shape) {
      if (extent < 0) return {};
    }
    if (!input.dtype || shape.size() > max_rank) return {};
    specs.push_back(make_spec(*input.dtype, Dims(std::span<const std::int64_t>(shape))));
  }
  return specs;
}

Environment environment_for(const DeviceManager& devices, DeviceType target) {
  const Device device{target, 0};
  return environment_of(devices.profile(devices.has(device) ? device : Device{}));
}

std::optional<TunedChoice> measured_engine(const MeasurementStore& store, const Model& model,
                                           const ExecutionPolicy& execution, int threads,
                                           const DeviceManager& devices) {
  const auto snapshot = store.freeze(environment_for(devices, execution.target));
  if (snapshot->size() == 0) return {};
  const auto fixed = fixed_inputs(model, execution);
  const auto entry = snapshot->find(name_in_store(model, execution, threads, fixed ? &*fixed : nullptr));
  if (!entry || !entry->stale.empty()) return {};
  return entry->choice;
}

}  // namespace xpuruntime
