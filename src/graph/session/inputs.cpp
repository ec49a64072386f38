#include "graph/session/inputs.h"

#include <map>

#include "core/printable.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse_inputs(const std::string& message) { fail(ErrorCode::invalid_argument, "Session", message); }

std::string shape_text(const ModelValue& value) {
  if (!value.shape) return "[...]";
  std::string text;
  for (const ModelExtent& extent : *value.shape) {
    text += (text.empty() ? "" : ",") + (extent.size >= 0      ? std::to_string(extent.size)
                                         : extent.name.empty() ? "?"
                                                               : printable(extent.name));
  }
  return "[" + text + "]";
}

std::string expected_inputs(const Model& model) {
  std::string text;
  for (const ModelValue& input : model.graph.inputs) {
    text += (text.empty() ? "" : ", ") + std::string("'") + printable(input.name) + "' " +
            (input.dtype ? std::string(to_string(*input.dtype)) : input.type) + shape_text(input);
  }
  return "the model takes " + (text.empty() ? "no inputs" : text);
}

bool fits(const ModelValue& value, const TensorSpec& spec, std::map<std::string, std::int64_t>& named) {
  if (value.dtype != spec.dtype) return false;
  if (!value.shape) return true;
  if (value.shape->size() != spec.shape.size()) return false;
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    const ModelExtent& extent = (*value.shape)[d];
    if (extent.size >= 0 && extent.size != spec.shape[d]) return false;
    if (extent.size < 0 && !extent.name.empty() &&
        named.emplace(extent.name, spec.shape[d]).first->second != spec.shape[d]) {
      return false;
    }
  }
  return true;
}

}  // namespace

void check_fixed_shapes(const Model& model, const ExecutionPolicy& execution) {
  if (!execution.static_shape || execution.fixed_shapes.size() == model.graph.inputs.size()) return;
  refuse_inputs(std::to_string(execution.fixed_shapes.size()) + " fixed_shapes; " + expected_inputs(model) +
                "; give one for each");
}

void check_inputs(const Model& model, const ExecutionPolicy& execution, std::span<const TensorSpec> specs) {
  const auto& expected = model.graph.inputs;
  if (specs.size() != expected.size())
    refuse_inputs(std::to_string(specs.size()) + " inputs; " + expected_inputs(model));
  std::map<std::string, std::int64_t> named;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const std::string given = "input '" + printable(expected[i].name) + "' is " + to_string(specs[i]);
    if (!fits(expected[i], specs[i], named)) refuse_inputs(given + "; " + expected_inputs(model));
    const auto& fixed = execution.fixed_shapes;
    if (execution.static_shape && Dims(std::span(fixed[i])) != specs[i].shape) {
      refuse_inputs(given + ", and the execution policy fixes its shape to " + to_string(Dims(std::span(fixed[i]))) +
                    "; give that shape");
    }
  }
}

std::vector<TensorSpec> specs_of(std::span<const Tensor> tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

}  // namespace xpuruntime
