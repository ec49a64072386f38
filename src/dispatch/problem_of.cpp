#include "dispatch/problem_of.h"

#include <algorithm>
#include <utility>

#include "dispatch/aliasing.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/precision/op_precision_rule.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(const Call& call, const std::string& message) {
  fail(ErrorCode::invalid_argument, "dispatch", std::string(to_string(call.op)) + ": " + message);
}

void check_tensor(const Call& call, const Tensor* tensor, const char* kind, std::size_t i) {
  if (tensor != nullptr && tensor->meta() != 0) return;
  const std::string which = std::string(kind) + " " + std::to_string(i);
  if (tensor == nullptr) refuse(call, which + " is a null pointer; pass a tensor");
  refuse(call, which + " is an empty Tensor object; give it memory and a shape");
}

void check_device(const Call& call, const Tensor* tensor, Device device) {
  if (tensor->device() == device) return;
  refuse(call, "tensors are on " + to_string(device) + " and " + to_string(tensor->device()) +
                   "; copy them to one device first");
}

// Read-only memory is not written. Two elements at one address would be written in an order nobody chose.
void check_writable(const Call& call, const Tensor& tensor) {
  if (tensor.read_only()) {
    refuse(call, "the output " + to_string(tensor.spec()) + " is read-only; write to memory that is not const");
  }
  if (tensor.contiguous() || !overlaps_itself(region_of(tensor))) return;
  refuse(call, "elements of the output " + to_string(tensor.spec()) +
                   " overlap (a stride of 0, or one too small); write to a tensor of its own");
}

}  // namespace

void check_precision(OpId op, std::optional<DataType> precision) {
  if (!precision || is_float_storage(*precision)) return;
  fail(ErrorCode::invalid_argument, "dispatch",
       std::string(to_string(op)) + ": the precision " + std::string(to_string(*precision)) +
           " is not a float type that tensors can have; give f32, f16, bf16 or f64");
}

Problem problem_of_inputs(const Call& call, const Limits& limits) {
  if (call.inputs.empty()) refuse(call, "no input; pass at least one tensor");
  std::vector<TensorSpec> inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) check_tensor(call, call.inputs[i], "input", i);
  for (const Tensor* tensor : call.inputs) {
    check_device(call, tensor, call.inputs.front()->device());
    inputs.push_back(tensor->spec());
  }
  if (call.attributes != nullptr && call.attributes->op() != call.op) {
    refuse(call, "the attributes are those of " + std::string(to_string(call.attributes->op())) +
                     "; make them with Attributes(op)");
  }
  check_precision(call.op, call.precision);
  const Attributes attributes = call.attributes == nullptr ? Attributes(call.op) : *call.attributes;
  Problem problem = make_problem(call.op, std::move(inputs), attributes, call.inputs.front()->device(), call.direction);
  problem.limits = limits;
  return problem;
}

Problem problem_of(const Call& call, const Limits& limits) {
  Problem problem = problem_of_inputs(call, limits);
  std::vector<TensorSpec> outputs;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) check_tensor(call, call.outputs[i], "output", i);
  for (const Tensor* tensor : call.outputs) {
    check_device(call, tensor, problem.device);
    check_writable(call, *tensor);
    outputs.push_back(tensor->spec());
  }
  set_outputs(problem, std::move(outputs));
  return problem;
}

bool writes_over_inputs(const Call& call, std::span<const CastStep> casts) {
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    const auto is_cast = [i](const CastStep& step) { return step.is_output && step.index == i; };
    if (std::any_of(casts.begin(), casts.end(), is_cast)) continue;
    for (const Tensor* in : call.inputs) {
      if (share_memory(*call.outputs[i], *in)) return true;
    }
  }
  return false;
}

}  // namespace xpuruntime
