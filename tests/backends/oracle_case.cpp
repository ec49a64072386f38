#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "backends/oracle.h"
#include "backends/oracle_gradients.h"

namespace xpuruntime::oracle {
namespace {

/// A tensor in new memory that starts exactly on the alignment the spec claims, where a backend allows it.
Tensor upload(Runtime& runtime, const TensorSpec& spec, const std::vector<std::byte>& bytes, Device device) {
  const std::size_t shift = spec.alignment >= 16 ? 0 : spec.alignment;
  Tensor host = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes.size() + shift)});
  std::copy(bytes.begin(), bytes.end(), host.as<std::byte>() + shift);
  const Tensor memory = runtime.devices().copy_to(host, device);
  return Tensor(memory.data(), spec, device, memory.byte_offset() + shift, memory.owner());
}

Solve solver_of(OpId op) {
  switch (op) {
    case OpId::matmul:
      return solve_matmul;
    case OpId::linear:
      return solve_linear;
    case OpId::conv2d:
    case OpId::conv3d:
      return solve_conv;
    case OpId::attention:
      return solve_attention;
    case OpId::max_pool2d:
    case OpId::max_pool3d:
    case OpId::avg_pool2d:
    case OpId::avg_pool3d:
      return solve_pool;
    case OpId::batch_norm1d:
    case OpId::batch_norm2d:
    case OpId::batch_norm3d:
      return solve_batch_norm;
    case OpId::layer_norm:
      return solve_layer_norm;
    case OpId::rms_norm:
      return solve_rms_norm;
    case OpId::normalize:
      return solve_normalize;
    case OpId::softmax:
    case OpId::log_softmax:
      return solve_softmax;
    case OpId::dropout:
      return solve_dropout;
    case OpId::relu:
    case OpId::gelu:
    case OpId::silu:
    case OpId::sigmoid:
    case OpId::tanh:
    case OpId::log:
    case OpId::exp:
    case OpId::sqrt:
      return solve_unary;
    case OpId::add:
    case OpId::sub:
    case OpId::mul:
    case OpId::div:
      return solve_binary;
    case OpId::reduce_sum:
    case OpId::reduce_mean:
    case OpId::reduce_max:
    case OpId::reduce_min:
      return solve_reduce;
    case OpId::embedding:
      return solve_embedding;
    case OpId::cross_entropy:
    case OpId::nll_loss:
      return solve_class_loss;
    case OpId::kl_div:
    case OpId::poisson_nll_loss:
      return solve_pointwise_loss;
    case OpId::cast:
    case OpId::copy:
      return solve_copy;
    case OpId::transpose:
      return solve_transpose;
    case OpId::concat:
      return solve_concat;
    case OpId::slice:
      return solve_slice;
    case OpId::unscale:
      return solve_unscale;
    default:
      if (const Solve solve = decoder_solver(op)) return solve;
  }
  throw std::logic_error("the oracle has no answer for " + std::string(to_string(op)));
}

}  // namespace

std::vector<const Tensor*> pointers(const std::vector<Tensor>& tensors) {
  std::vector<const Tensor*> out;
  for (const Tensor& tensor : tensors) out.push_back(&tensor);
  return out;
}

std::vector<std::optional<std::size_t>> inputs_to_overwrite(const Problem& problem) {
  std::vector<std::optional<std::size_t>> over(problem.outputs.size());
  for (std::size_t output = 0; output < over.size(); ++output) {
    for (std::size_t i = 0; i < problem.inputs.size() && !over[output]; ++i) {
      const bool may = (input_spec(op_info(problem.op), i).in_place >> output & 1) != 0;
      const bool taken = std::find(over.begin(), over.end(), i) != over.end();
      if (may && !taken && problem.inputs[i] == problem.outputs[output]) over[output] = i;
    }
  }
  return over;
}

std::vector<Answer> solve(const Problem& problem, const std::vector<Values>& inputs) {
  if (problem.direction == Direction::backward) return solve_backward(problem, inputs);
  return solver_of(problem.op)(problem, inputs);
}

Case::Case(Problem problem, std::uint64_t seed, Fill fill)
    : problem_(std::move(problem)), inputs_(make_inputs(problem_, seed, fill)) {
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    input_bytes_.push_back(layout(problem_.inputs[i], inputs_[i]));
    // A stride of 0 has one value for many elements.
    inputs_[i] = elements(problem_.inputs[i], input_bytes_[i].data());
  }
  answers_ = solve(problem_, inputs_);
}

Result Case::through(Runtime& runtime, const std::function<void()>& after_launch) const {
  return run(runtime, false, after_launch);
}

Result Case::in_place(Runtime& runtime) const { return run(runtime, true, {}); }

Result Case::run(Runtime& runtime, bool in_place, const std::function<void()>& after_launch) const {
  const Device device = problem_.device;
  std::vector<Tensor> inputs, outputs;
  for (std::size_t i = 0; i < inputs_.size(); ++i) {
    inputs.push_back(upload(runtime, problem_.inputs[i], input_bytes_[i], device));
  }
  const auto over = inputs_to_overwrite(problem_);
  for (std::size_t i = 0; i < over.size(); ++i) {
    const std::vector<std::byte> poison(span_bytes(problem_.outputs[i]), output_poison);
    outputs.push_back(in_place && over[i] ? inputs[*over[i]] : upload(runtime, problem_.outputs[i], poison, device));
  }
  const std::vector<const Tensor*> in = pointers(inputs), out = pointers(outputs);
  const Call call{.op = problem_.op,
                  .inputs = in,
                  .outputs = out,
                  .attributes = &problem_.attributes,
                  .direction = problem_.direction};
  runtime.dispatcher().dispatch(call);
  Result result{runtime.dispatcher().decide(call).kernel, {}};
  if (after_launch) after_launch();

  DeviceDriver& driver = runtime.devices().driver(device);
  const Status done = driver.synchronize(device.index, {});
  EXPECT_TRUE(done.ok()) << done.message();
  for (const Tensor& tensor : outputs) {
    std::vector<std::byte> bytes(span_bytes(tensor.spec()));
    if (!bytes.empty()) {
      const Status copied =
          driver.copy_to_host(device.index, bytes.data(), tensor.data(), tensor.byte_offset(), bytes.size(), {});
      EXPECT_TRUE(copied.ok()) << copied.message();
    }
    result.values.push_back(elements(tensor.spec(), bytes.data()));
    result.strayed |= !in_place && !gaps_untouched(tensor.spec(), bytes.data());
  }
  return result;
}

std::shared_ptr<const Case> case_of(const std::string& text, Device device, Fill fill) {
  thread_local std::string last;
  thread_local std::shared_ptr<const Case> kept;
  const std::string key = text + to_string(device) + (fill == Fill::special ? "!" : "");
  if (kept == nullptr || last != key) {
    kept = std::make_shared<Case>(parse_problem(text, device), std::hash<std::string>()(text), fill);
    last = key;
  }
  return kept;
}

bool has_gradients(OpId op) {
  switch (op) {
    case OpId::matmul:
    case OpId::linear:
    case OpId::conv2d:
    case OpId::conv3d:
    case OpId::relu:
    case OpId::gelu:
    case OpId::silu:
    case OpId::sigmoid:
    case OpId::tanh:
    case OpId::softmax:
    case OpId::log_softmax:
    case OpId::layer_norm:
    case OpId::rms_norm:
    case OpId::cross_entropy:
    case OpId::nll_loss:
      return true;
    default:
      return false;
  }
}

std::vector<Answer> solve_backward(const Problem& problem, const std::vector<Values>& inputs) {
  switch (problem.op) {
    case OpId::matmul:
      return gradients_of_matmul(problem, inputs);
    case OpId::linear:
      return gradients_of_linear(problem, inputs);
    case OpId::conv2d:
    case OpId::conv3d:
      return gradients_of_conv(problem, inputs);
    case OpId::softmax:
    case OpId::log_softmax:
      return gradients_of_softmax(problem, inputs);
    case OpId::layer_norm:
    case OpId::rms_norm:
      return gradients_of_layer_norm(problem, inputs);
    case OpId::cross_entropy:
    case OpId::nll_loss:
      return gradients_of_class_loss(problem, inputs);
    default:
      break;
  }
  if (op_info(problem.op).category == OpCategory::activation) return gradients_of_activation(problem, inputs);
  throw std::logic_error("the oracle has no gradient of " + std::string(to_string(problem.op)));
}

}  // namespace xpuruntime::oracle
