#include "xpuruntime/graph/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>

#include "core/printable.h"
#include "graph/native/graph_runs.h"
#include "graph/native/lowering.h"
#include "graph/native/report.h"
#include "graph/quantize/prepare.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

[[noreturn]] void refuse(ErrorCode code, const std::string& message) { fail(code, "Session", message); }

ExecutionPolicy on_cpu() {
  ExecutionPolicy policy;
  policy.target = DeviceType::cpu;
  return policy;
}

/// In files constants begin at any element; kernels would copy them in every run.
Model with_aligned_constants(Model model) {
  for (auto& [name, constant] : model.graph.constants) {
    if (constant.spec().alignment >= 16 || constant.span() == 0) continue;
    const Tensor copy = Tensor::empty(constant.dtype(), constant.shape());
    std::memcpy(copy.data(), constant.as<const void>(), constant.span());
    constant = copy.as_read_only();
    constant.set_version(Tensor::new_version());
  }
  return model;
}

bool is_16_bit(DataType dtype) { return dtype == DataType::float16 || dtype == DataType::bfloat16; }

/// The rules that say what a graph in f16 or bf16 computes in it: those in force, else those given, else the default.
Autocast autocast_of(DataType precision, const Scope& scope, const std::shared_ptr<const AmpRules>& given) {
  Autocast autocast{scope.autocast.on() ? scope.autocast.rules : given};
  if (autocast.rules == nullptr) autocast.rules = AmpRegistry().snapshot();
  autocast.config = autocast.rules->config();
  autocast.config.enabled = true;
  autocast.config.target_precision = precision;
  return autocast;
}

/// The target, or where it is not here what is declared instead.
Device device_of(const ExecutionPolicy& policy, const DeviceManager& devices) {
  for (const DeviceType type : {policy.target, policy.allow_fallback.value_or(policy.target)}) {
    if (devices.has({type, 0})) return {type, 0};
  }
  std::string here;
  for (const Device device : devices.devices()) here += (here.empty() ? "" : ", ") + to_string(device);
  refuse(ErrorCode::not_supported, "target " + std::string(to_string(policy.target)) +
                                       " is not here: " + devices.why_absent(policy.target) + "; here are " + here +
                                       "; set target or allow_fallback to one of them");
}

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

namespace {

void count_missing(const ModelGraph& graph, std::map<std::string, std::size_t>& counts) {
  for (const ModelNode& node : graph.nodes) {
    if (native::is_branch(node) || native::is_control(node)) {
      for (const auto& [name, value] : node.attributes) {
        const auto* branch = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
        if (branch != nullptr) count_missing(**branch, counts);
      }
    } else if (native::find_operator(node) == nullptr) {
      ++counts[native::operator_name(node)];
    }
  }
}

}  // namespace

std::string_view to_string(StepKind kind) {
  switch (kind) {
    case StepKind::kernel:
      return "kernel";
    case StepKind::view:
      return "view";
    case StepKind::constant:
      return "constant";
    case StepKind::fused:
      return "fused";
  }
  return "?";
}

std::vector<MissingOp> missing_ops(const Model& model) {
  std::map<std::string, std::size_t> counts;
  count_missing(model.graph, counts);
  std::vector<MissingOp> missing;
  for (const auto& [name, count] : counts)
    missing.push_back({name, "there is no kernel for it in this version", count});
  return missing;
}

struct Session::Impl {
  Impl(quantization::Prepared prepared, Dispatcher& on, const DeviceManager& known, const SessionOptions& options)
      : model(with_aligned_constants(std::move(prepared.model))),
        quantization(std::move(prepared.report)),
        dispatcher(on),
        devices(known),
        execution(options.execution.value_or(on_cpu())),
        device((execution.check(), device_of(execution, known))),
        runs({model, on, known, device, execution}) {
    check_operators();
    const ScopedPolicy layered(dispatcher, options.policy);
    scope = options.lock ? dispatcher.layered_scope(*options.lock) : dispatcher.current_scope();
    if (is_16_bit(execution.precision)) {
      scope = dispatcher.make_scope(scope->policy, autocast_of(execution.precision, *scope, options.amp), scope->lock);
    }
    if (execution.static_shape && execution.fixed_shapes.size() != model.graph.inputs.size()) {
      refuse(ErrorCode::invalid_argument, std::to_string(execution.fixed_shapes.size()) + " fixed_shapes; " +
                                              expected_inputs(model) + "; give one for each");
    }
  }

  void check_operators() const {
    const std::vector<MissingOp> missing = missing_ops(model);
    if (missing.empty()) return;
    std::string text;
    for (const MissingOp& one : missing) {
      text += (text.empty() ? "" : ", ") + printable(one.op) + " (" + std::to_string(one.nodes) + ")";
    }
    refuse(ErrorCode::not_supported, "the model has operators that this version cannot run: " + text +
                                         "; run it with another engine, or export it without them");
  }

  void check_inputs(std::span<const TensorSpec> specs) const {
    const auto& expected = model.graph.inputs;
    if (specs.size() != expected.size()) {
      refuse(ErrorCode::invalid_argument, std::to_string(specs.size()) + " inputs; " + expected_inputs(model));
    }
    std::map<std::string, std::int64_t> named;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (!fits(expected[i], specs[i], named)) {
        refuse(ErrorCode::invalid_argument,
               "input '" + printable(expected[i].name) + "' is " + to_string(specs[i]) + "; " + expected_inputs(model));
      }
      const auto& fixed = execution.fixed_shapes;
      if (execution.static_shape && Dims(std::span(fixed[i])) != specs[i].shape) {
        refuse(ErrorCode::invalid_argument, "input '" + printable(expected[i].name) + "' is " + to_string(specs[i]) +
                                                ", and the execution policy fixes its shape to " +
                                                to_string(Dims(std::span(fixed[i]))) + "; give that shape");
      }
    }
  }

  const Model model;
  const std::optional<QuantizationReport> quantization;
  Dispatcher& dispatcher;
  const DeviceManager& devices;
  const ExecutionPolicy execution;
  const Device device;
  ScopePtr scope = {};
  const native::GraphRuns runs;
};

Session::Session(Model model, Dispatcher& dispatcher, const DeviceManager& devices, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(quantization::prepared(std::move(model), dispatcher, devices, options), dispatcher,
                                   devices, options)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Model& Session::model() const { return impl_->model; }
const std::optional<QuantizationReport>& Session::quantization() const { return impl_->quantization; }
const std::vector<ModelValue>& Session::inputs() const { return impl_->model.graph.inputs; }
const std::vector<ModelValue>& Session::outputs() const { return impl_->model.graph.outputs; }

namespace {

std::vector<TensorSpec> specs_of(std::span<const Tensor> tensors) {
  std::vector<TensorSpec> specs;
  for (const Tensor& tensor : tensors) specs.push_back(tensor.spec());
  return specs;
}

}  // namespace

std::vector<Tensor> Session::run(std::span<const Tensor> inputs) const {
  impl_->check_inputs(specs_of(inputs));
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  return impl_->runs.run(inputs);
}

std::vector<SessionStep> Session::explain(std::span<const TensorSpec> inputs) const {
  impl_->check_inputs(inputs);
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  const auto ready = impl_->runs.for_specs(inputs, "explain it with inputs instead of shapes");
  return native::steps_of(impl_->model, ready->program(), ready->decide(inputs));
}

std::vector<SessionStep> Session::explain(std::span<const Tensor> inputs) const {
  impl_->check_inputs(specs_of(inputs));
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  std::vector<SessionStep> steps;
  impl_->runs.each_program(inputs, [&](const Model& model, const auto& ready, std::span<const Tensor> given) {
    for (SessionStep& step : native::steps_of(model, ready->program(), ready->decide(specs_of(given)))) {
      steps.push_back(std::move(step));
    }
  });
  return steps;
}

SessionProfile Session::profile(std::span<const Tensor> inputs, std::int64_t runs) const {
  if (runs < 1 || runs > 1'000'000) {
    refuse(ErrorCode::invalid_argument, std::to_string(runs) + " runs; give a number from 1 to 1000000");
  }
  std::vector<double> whole;
  for (std::int64_t i = 0; i <= runs; ++i) {  // the first decides
    const auto start = std::chrono::steady_clock::now();
    run(inputs);
    if (i > 0) whole.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  const std::vector<TensorSpec> specs = specs_of(inputs);
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  const auto ready = impl_->runs.for_inputs(inputs, "time whole runs instead of a profile");
  const std::vector<double> seconds = ready->time(inputs, runs, [this] { return impl_->runs.deadline(); });
  SessionProfile profile = native::profile_of(native::steps_of(impl_->model, ready->program(), ready->decide(specs)),
                                              ready->program(), seconds);
  profile.runs = runs;
  profile.run_us = native::median_of(whole) * 1e6;
  return profile;
}

std::uint64_t Session::memory_bytes(std::span<const TensorSpec> inputs) const {
  impl_->check_inputs(inputs);
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  return impl_->runs.for_specs(inputs, "ask with inputs instead of shapes")->program().memory_bytes;
}

std::uint64_t Session::memory_bytes(std::span<const Tensor> inputs) const {
  impl_->check_inputs(specs_of(inputs));
  const ScopedPolicy entered(impl_->dispatcher, impl_->scope);
  std::uint64_t most = 0;
  impl_->runs.each_program(inputs, [&](const Model&, const auto& ready, std::span<const Tensor>) {
    most = std::max(most, ready->program().memory_bytes);
  });
  return most;
}

}  // namespace xpuruntime
