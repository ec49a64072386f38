#include "graph/session/inputs.h"

#include <algorithm>
#include <map>

#include "core/printable.h"
#include "graph/onnx/element_type.h"
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

std::string type_text(const ModelValue& value) {
  return (value.dtype ? std::string(to_string(*value.dtype)) : value.type) + shape_text(value);
}

std::string listed(const std::vector<ModelValue>& values) {
  std::string text;
  for (const ModelValue& value : values) {
    text += (text.empty() ? "'" : ", '") + printable(value.name) + "' " + type_text(value);
  }
  return text;
}

std::string expected_inputs(const Model& model) {
  return "the model takes " + (model.graph.inputs.empty() ? "no inputs" : listed(model.graph.inputs));
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

std::string flaw_of_input_types(const Model& model) {
  std::string text;
  for (const ModelValue& input : model.graph.inputs) {
    if (input.dtype || input.type.empty()) continue;
    text += (text.empty() ? "input '" : ", input '") + printable(input.name) + "' is of " +
            onnx::element_type_text(input.type);
  }
  return text.empty()
             ? text
             : text + ", which no tensor here has; give the model an input of another type and a Cast behind it";
}

void check_fixed_shapes(const Model& model, const ExecutionPolicy& execution) {
  if (!execution.static_shape && !execution.fixed_shapes.empty()) {
    refuse_inputs("the execution policy has fixed_shapes, and its static_shape is false; set that, or leave them out");
  }
  if (!execution.static_shape) return;
  const auto& inputs = model.graph.inputs;
  const auto& fixed = execution.fixed_shapes;
  if (fixed.size() != inputs.size()) {
    refuse_inputs(std::to_string(fixed.size()) + " fixed_shapes; " + expected_inputs(model) + "; give one for each");
  }
  std::map<std::string, std::int64_t> named;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const Dims shape{std::span(fixed[i])};
    if (fits({.dtype = DataType::float32, .shape = inputs[i].shape}, make_spec(DataType::float32, shape), named))
      continue;
    refuse_inputs("the execution policy fixes the shape of input '" + printable(inputs[i].name) + "' to " +
                  to_string(shape) + "; " + expected_inputs(model) + "; give a shape that the model takes");
  }
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

namespace {

bool overlap(const Tensor& a, const Tensor& b) {
  if (a.device() != b.device() || a.span() == 0 || b.span() == 0) return false;
  const auto* const begin_a = a.as<const std::byte>();
  const auto* const begin_b = b.as<const std::byte>();
  return begin_a < begin_b + b.span() && begin_b < begin_a + a.span();
}

/// What is wrong with memory for an output; empty: nothing.
std::string flaw_of(const ModelValue& output, const Tensor& given) {
  if (given.read_only()) return "is read-only";
  if (!given.contiguous()) return "is not contiguous";
  std::map<std::string, std::int64_t> any;
  const ModelValue plain{.dtype = output.dtype ? output.dtype : given.dtype(), .shape = output.shape};
  if (!fits(plain, given.spec(), any)) {
    return "is " + to_string(given.spec()) + ", and the model gives " + type_text(output);
  }
  return {};
}

}  // namespace

void check_outputs(const Model& model, std::span<const Tensor> inputs, GivenOutputs outputs) {
  const auto& values = model.graph.outputs;
  if (outputs.empty()) return;
  if (outputs.size() != values.size()) {
    refuse_inputs(std::to_string(outputs.size()) + " outputs are given, and the model has " +
                  std::to_string(values.size()) + "; give a tensor or nothing for each");
  }
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (!outputs[i]) continue;
    std::string flaw = flaw_of(values[i], *outputs[i]);
    for (std::size_t j = 0; j < inputs.size() && flaw.empty(); ++j) {
      if (overlap(*outputs[i], inputs[j]))
        flaw = "is in the memory of input '" + printable(model.graph.inputs[j].name) + "'";
    }
    for (std::size_t j = 0; j < i && flaw.empty(); ++j) {
      if (outputs[j] && overlap(*outputs[i], *outputs[j]))
        flaw = "is in the memory of '" + printable(values[j].name) + "'";
    }
    if (!flaw.empty())
      text += (text.empty() ? "" : "; ") + std::string("output '") + printable(values[i].name) + "' " + flaw;
  }
  if (!text.empty()) refuse_inputs(text + "; give contiguous memory of its own of that dtype and shape");
}

namespace {

/// Sizes may differ: exporters write wrong ones, which no engine minds.
bool is_result_of(const ModelValue& output, const Tensor& result) {
  if (output.dtype && output.dtype != result.dtype()) return false;
  return !output.shape || output.shape->size() == result.shape().size();
}

}  // namespace

void check_results(const Model& model, const std::string& engine, std::span<const Tensor> results) {
  const auto& outputs = model.graph.outputs;
  const auto refuse = [&](const std::string& text) {
    fail(ErrorCode::device_error, "Session",
         "engine " + engine + " gave " + text + "; use another engine, or mend this one");
  };
  if (results.size() != outputs.size()) {
    refuse(std::to_string(results.size()) + (results.size() == 1 ? " result" : " results") + " for the model's " +
           std::to_string(outputs.size()) + ": " + listed(outputs));
  }
  std::string text;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (is_result_of(outputs[i], results[i])) continue;
    text += (text.empty() ? "" : ", and ") + to_string(make_spec(results[i].dtype(), results[i].shape())) +
            " for output '" + printable(outputs[i].name) + "', which is " + type_text(outputs[i]) + " in the model";
  }
  if (!text.empty()) refuse(text);
}

std::vector<TensorSpec> specs_of(std::span<const Tensor> tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

}  // namespace xpuruntime
