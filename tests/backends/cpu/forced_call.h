#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/dispatch/scope.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cpu_tests {

inline Tensor tensor_of(const Dims& shape, const std::vector<float>& values) {
  Tensor tensor = Tensor::empty(DataType::float32, shape);
  std::copy(values.begin(), values.end(), tensor.as<float>());
  return tensor;
}

inline Tensor tensor_of(const Dims& shape, const std::vector<std::int64_t>& values) {
  Tensor tensor = Tensor::empty(DataType::int64, shape);
  std::copy(values.begin(), values.end(), tensor.as<std::int64_t>());
  return tensor;
}

/// Runs one kernel, by name, on f32 outputs of the inferred shapes; its refusal is an exception.
inline std::vector<std::vector<float>> forced_call(const std::string& kernel, const Attributes& attributes,
                                                   const std::vector<Tensor>& inputs,
                                                   Direction direction = Direction::forward) {
  std::vector<TensorSpec> specs;
  std::vector<const Tensor*> in, out;
  for (const Tensor& tensor : inputs) {
    specs.push_back(tensor.spec());
    in.push_back(&tensor);
  }
  std::vector<Tensor> outputs;
  for (const TensorSpec& spec : make_problem(attributes.op(), specs, attributes, {}, direction).outputs) {
    outputs.push_back(Tensor::empty(DataType::float32, spec.shape));
  }
  for (const Tensor& tensor : outputs) out.push_back(&tensor);
  Runtime& runtime = Runtime::global();
  KernelPolicy policy;
  policy.force(to_string(attributes.op()), kernel);
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  runtime.dispatcher().dispatch(
      {.op = attributes.op(), .inputs = in, .outputs = out, .attributes = &attributes, .direction = direction});
  std::vector<std::vector<float>> values;
  for (const Tensor& tensor : outputs) {
    const auto* data = tensor.as<const float>();
    values.emplace_back(data, data + element_count(tensor.spec()));
  }
  return values;
}

}  // namespace xpuruntime::cpu_tests
