#include "xpuruntime/core/problem.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/forward_call.h"
#include "core/names.h"
#include "core/op_table.h"
#include "core/result_layouts.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

// Specs may be written by hand: they are checked and brought to their one canonical form.
TensorSpec canonical(const TensorSpec& spec) {
  return make_spec(spec.dtype, spec.shape, spec.contiguous ? contiguous_strides(spec.shape) : spec.strides,
                   spec.alignment);
}

// Attributes that were made for no op in particular stand for this op's defaults.
Attributes attributes_for(OpId op, const Attributes& attributes) {
  if (attributes.words().empty()) return Attributes(op);
  if (attributes.op() == op) return attributes;
  fail(ErrorCode::invalid_argument, "make_problem",
       "the attributes of " + std::string(to_string(attributes.op())) + " do not belong to " +
           std::string(to_string(op)) + "; make them with Attributes(op)");
}

std::vector<TensorSpec> infer_forward(const OpInfo& info, std::span<const TensorSpec> inputs,
                                      const Attributes& attributes) {
  check_input_count(info, inputs);
  std::vector<TensorSpec> outputs = info.infer(inputs, attributes);
  if (!outputs.empty()) return outputs;
  fail(ErrorCode::invalid_argument, "make_problem",
       "the infer function of " + std::string(info.name) + " returned no outputs; return one or more");
}

void check_gradient(const std::string& name, const TensorSpec& gradient, std::span<const TensorSpec> outputs) {
  if (outputs.size() != 1) {
    fail(ErrorCode::not_supported, "make_problem",
         name + " has no single output to take a gradient of; use it forward only");
  }
  if (!is_floating(outputs[0].dtype) || !is_floating(gradient.dtype)) {
    fail(ErrorCode::invalid_argument, "make_problem",
         name + ": the output " + to_string(outputs[0]) + " and its gradient " + to_string(gradient) +
             " must be floating; cast the inputs to a float type");
  }
  if (gradient.shape != outputs[0].shape) {
    fail(ErrorCode::invalid_argument, "make_problem",
         name + ": the gradient " + to_string(gradient) + " does not match the output " + to_string(outputs[0]) +
             "; give a gradient of the output's shape as the last input");
  }
}

std::vector<TensorSpec> infer_backward(const OpInfo& info, std::span<const TensorSpec> inputs,
                                       const Attributes& attributes) {
  const std::string name = std::string(info.name) + ":backward";
  if (inputs.empty()) {
    fail(ErrorCode::invalid_argument, "make_problem",
         name + " got no inputs; give the forward inputs and the gradient of the output");
  }
  const auto forward = inputs.first(inputs.size() - 1);
  const auto none = [](const InputSpec& spec) { return !spec.gradient; };
  if (!info.inputs.empty() && std::all_of(info.inputs.begin(), info.inputs.end(), none)) {
    fail(ErrorCode::not_supported, "make_problem",
         name + " is not computed; use " + std::string(info.name) + " forward only");
  }
  const std::vector<TensorSpec> results = infer_forward(info, forward, attributes);
  check_gradient(name, inputs.back(), results);
  const bool by_elements = info.category == OpCategory::elementwise || info.category == OpCategory::activation;
  const bool keeps_layout = by_elements && !results[0].contiguous;
  std::vector<TensorSpec> outputs;
  for (std::size_t i = 0; i < forward.size(); ++i) {
    const TensorSpec& input = forward[i];
    if (!has_gradient(info, i, input.dtype)) continue;
    outputs.push_back(keeps_layout ? in_layout_of(input, input.dtype) : make_spec(input.dtype, input.shape));
  }
  if (outputs.empty()) {
    fail(ErrorCode::invalid_argument, "make_problem",
         name + ": no input that can have a gradient is floating; cast one to a float type first");
  }
  return outputs;
}

void check_output(const Problem& problem, std::size_t i, const TensorSpec& given) {
  const auto refuse = [&](const std::string& why) {
    fail(ErrorCode::invalid_argument, "set_outputs",
         std::string(to_string(problem.op)) + ": output " + std::to_string(i) + " is " + to_string(given) + why);
  };
  if (given.shape != problem.outputs[i].shape) refuse("; give the shape of " + to_string(problem.outputs[i]));
  for (std::size_t d = 0; d < given.shape.size(); ++d) {
    if (given.strides[d] != 0 || given.shape[d] <= 1) continue;
    refuse(" and would be written twice at one place; give strides over 0");
  }
}

// A multiply of 64 by 64 bits, its halves folded: every input bit reaches every output bit.
std::uint64_t fold(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = Wide{a} * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
}

class Mixer {
 public:
  void add(std::uint64_t word) { state_ = fold(state_ ^ word, 0x9fb21c651e98df25) + 0x2545f4914f6cdd1d; }
  void add(std::span<const std::int64_t> words) {
    for (const std::int64_t word : words) add(static_cast<std::uint64_t>(word));
  }
  void add(const TensorSpec& spec) {
    add(meta_word(spec, {}));
    add(std::span(spec.shape.data(), spec.shape.size()));
    // Those of a contiguous tensor follow from its shape.
    if (!spec.contiguous) add(std::span(spec.strides.data(), spec.strides.size()));
  }
  std::uint64_t result() const { return fold(state_ ^ (state_ >> 32), 0xd6e8feb86659fd93); }

 private:
  std::uint64_t state_ = 0xa0761d6478bd642f;
};

std::uint64_t head_word(const Problem& problem) {
  return static_cast<std::uint64_t>(problem.op) | static_cast<std::uint64_t>(problem.direction) << 16 |
         static_cast<std::uint64_t>(problem.device.type) << 24 |
         static_cast<std::uint64_t>(problem.device.index) << 32 |
         static_cast<std::uint64_t>(problem.limits.deterministic) << 40 |
         static_cast<std::uint64_t>(problem.limits.workspace_bytes.has_value()) << 41 |
         static_cast<std::uint64_t>(problem.inputs.size()) << 48 |
         static_cast<std::uint64_t>(problem.outputs.size()) << 56;
}

// Unset is no limit.
template <typename T>
std::optional<T> smaller(const std::optional<T>& a, const std::optional<T>& b) {
  if (!a || !b) return a ? a : b;
  return std::min(*a, *b);
}

}  // namespace

Limits stricter(const Limits& a, const Limits& b) {
  return {.workspace_bytes = smaller(a.workspace_bytes, b.workspace_bytes),
          .deterministic = a.deterministic || b.deterministic,
          .threads = smaller(a.threads, b.threads)};
}

const TensorSpec& no_input() {
  static const TensorSpec none = make_spec(DataType::boolean, {0});
  return none;
}

bool has_input(std::span<const TensorSpec> inputs, std::size_t i) {
  return i < inputs.size() && !(inputs[i].dtype == DataType::boolean && inputs[i].shape == no_input().shape);
}

std::vector<std::string_view> opt_ins_of(const Problem& problem) {
  const OpInfo& info = op_info(problem.op);
  const bool backward = problem.direction == Direction::backward && !problem.inputs.empty();
  const auto inputs = std::span(problem.inputs).first(problem.inputs.size() - (backward ? 1 : 0));
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < info.inputs.size(); ++i) {
    if (info.inputs[i].opt_in && has_input(inputs, i)) names.push_back(info.inputs[i].name);
  }
  auto words = problem.attributes.words();
  for (const AttributeSpec& spec : info.attributes) {
    const std::size_t size = std::min(word_count(spec), words.size());
    if (spec.opt_in && size != 0 && !holds_default(spec, words.first(size))) names.push_back(spec.name);
    words = words.subspan(size);
  }
  return names;
}

Problem make_problem(OpId op, std::vector<TensorSpec> inputs, const Attributes& attributes, Device device,
                     Direction direction) {
  const OpInfo& info = op_info(op);
  if (inputs.size() > max_inputs) {
    fail(ErrorCode::invalid_argument, "make_problem",
         std::to_string(inputs.size()) + " inputs are over the limit of 64; split the call");
  }
  Problem problem = {.op = op, .direction = direction, .device = device, .inputs = std::move(inputs)};
  for (TensorSpec& input : problem.inputs) input = canonical(input);
  problem.attributes = attributes_for(op, attributes);
  const auto infer = direction == Direction::forward ? infer_forward : infer_backward;
  problem.outputs = infer(info, problem.inputs, problem.attributes);
  return problem;
}

void set_outputs(Problem& problem, std::vector<TensorSpec> outputs) {
  if (outputs.size() != problem.outputs.size()) {
    fail(ErrorCode::invalid_argument, "set_outputs",
         std::string(to_string(problem.op)) + " got " + counted(outputs.size(), "output") + "; give " +
             list_text(problem.outputs));
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = canonical(outputs[i]);
    check_output(problem, i, outputs[i]);
  }
  problem.outputs = std::move(outputs);
}

Problem checked(const Problem& problem) {
  Problem result = make_problem(problem.op, problem.inputs, problem.attributes, problem.device, problem.direction);
  if (!problem.outputs.empty()) set_outputs(result, problem.outputs);
  result.limits = problem.limits;
  return result;
}

std::uint64_t hash_of(const Problem& problem) {
  Mixer mixer;
  mixer.add(head_word(problem));
  for (const TensorSpec& spec : problem.inputs) mixer.add(spec);
  for (const TensorSpec& spec : problem.outputs) mixer.add(spec);
  mixer.add(problem.attributes.words());
  mixer.add(problem.limits.workspace_bytes.value_or(0));
  mixer.add(problem.limits.threads.value_or(0));
  return mixer.result();
}

DataType promoted_dtype(const Problem& problem) { return promote(problem.inputs); }

}  // namespace xpuruntime
