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

using Family = std::span<const Reference> (*)();

constexpr Family families[] = {
    attention_references, decoder_references,      elementwise_references, loss_references, matrix_references,
    movement_references,  indexing_references,     arranging_references,   norm_references, reduce_references,
    window_references,    quantization_references, pointwise_references};

/// Empty where no family has the op.
Reference reference_of(OpId op) {
  for (const Family family : families) {
    for (const Reference& reference : family()) {
      if (reference.ops.contains(op)) return reference;
    }
  }
  return {};
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
  const Reference row = reference_of(problem.op);
  Solve* const reference = problem.direction == Direction::backward ? row.gradients : row.solve;
  if (reference == nullptr) throw std::logic_error("the oracle has no answer for " + to_string(problem));
  return reference(problem, inputs);
}

bool has_gradients(OpId op) { return reference_of(op).gradients != nullptr; }

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
    const Tensor input = upload(runtime, problem_.inputs[i], input_bytes_[i], device);
    inputs.push_back(in_place ? input : input.as_read_only());  // memory of the caller's may be const
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

}  // namespace xpuruntime::oracle
