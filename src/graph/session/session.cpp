#include "xpuruntime/graph/session.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "graph/native/engine.h"
#include "graph/quantize/prepare.h"
#include "graph/session/engine_choice.h"
#include "graph/session/engine_line.h"
#include "graph/session/engine_lock.h"
#include "graph/session/inputs.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/graph/model_cache.h"

namespace xpuruntime {
namespace {

ExecutionPolicy on_cpu() {
  ExecutionPolicy policy;
  policy.target = DeviceType::cpu;
  return policy;
}

double median_of(std::vector<double> numbers) {
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(numbers.size() / 2);
  std::nth_element(numbers.begin(), middle, numbers.end());
  return *middle;
}

/// The rules that say what a graph in f16 or bf16 computes in it: those in force, else those given, else the default.
Autocast autocast_of(DataType precision, const Scope& scope, const std::shared_ptr<const AmpRules>& given) {
  Autocast autocast{scope.autocast.on() ? scope.autocast.rules : given};
  if (autocast.rules == nullptr) autocast.rules = AmpRegistry().snapshot();
  autocast.config = autocast.rules->config();
  autocast.config.enabled = true;
  autocast.config.target_precision = precision;
  return autocast;
}

/// What of the policy and autocast in force must hold, and only our kernels obey; empty: nothing.
std::string asked_of_kernels(const KernelPolicy& policy, bool is_autocast) {
  const auto is_forced = [](const auto& preference) { return preference.second.force; };
  const auto forced = std::find_if(policy.preferences.begin(), policy.preferences.end(), is_forced);
  if (forced != policy.preferences.end()) {
    return "the kernel policy forces " + forced->second.kernels.front() + " for " +
           std::string(to_string(forced->first));
  }
  if (policy.deterministic.value_or(false)) return "the kernel policy asks for deterministic kernels";
  if (policy.workspace_limit_bytes) return "the kernel policy limits their workspace";
  if (!policy.precision.empty() || policy.default_precision.value_or(DataType::float32) != DataType::float32) {
    return "the kernel policy has precisions of ops";
  }
  return is_autocast ? "autocast is on" : "";
}

/// What of a policy other engines pass over.
bool likes_kernels(const KernelPolicy& policy) {
  return !policy.preferences.empty() || !policy.rules.empty() || policy.auto_strategy.has_value();
}

ScopePtr scope_of(Dispatcher& dispatcher, const SessionOptions& options, DataType precision) {
  const ScopedPolicy layered(dispatcher, options.policy);
  ScopePtr scope = options.lock ? dispatcher.layered_scope(*options.lock) : dispatcher.current_scope();
  if (precision != DataType::float16 && precision != DataType::bfloat16) return scope;
  return dispatcher.make_scope(scope->policy, autocast_of(precision, *scope, options.amp), scope->lock);
}

}  // namespace

struct Session::Impl {
  Impl(quantization::Prepared prepared, Dispatcher& dispatcher, const DeviceManager& devices,
       const SessionOptions& options)
      : model(std::make_shared<const Model>(std::move(prepared.model))),
        quantization(std::move(prepared.report)),
        execution(options.execution.value_or(on_cpu())),
        dispatcher(dispatcher),
        devices(devices) {
    execution.check();
    check_fixed_shapes(*model, execution);
    check_cache_dir();
    const bool is_autocast = execution.precision == DataType::float32 && dispatcher.current_scope()->autocast.on();
    scope = scope_of(dispatcher, options, execution.precision);
    std::vector<std::shared_ptr<const Engine>> engines = {native::make_engine(dispatcher, devices, scope)};
    check_calibrated_here();
    if (options.engines != nullptr && !quantization) {
      for (auto& engine : options.engines->engines()) engines.push_back(std::move(engine));
    }
    const ScopedPolicy entered(dispatcher, scope);
    const auto threads = static_cast<int>(dispatcher.policy().limits().threads.value_or(0));
    EngineRequest request{.model = model,
                          .execution = execution,
                          .threads = threads,
                          .only_native = asked_of_kernels(scope->policy, is_autocast),
                          .has_choices = likes_kernels(scope->policy)};
    is_for_native = !request.only_native.empty();
    EnginePreference preferred;
    if (const std::optional<LockUse> lock = dispatcher.lock(); lock && lock->lock != nullptr) {
      std::tie(engines, preferred) = engine_of_lock(*lock, request, engines, devices);
    } else if (!lock) {  // its calls are refused until the program says under which lock they are
      engines.resize(1);
    } else if (options.store != nullptr && execution.engine == "auto" && engines.size() > 1) {
      if (const auto choice = measured_engine(*options.store, *model, execution, threads, devices)) {
        preferred = {choice->kernel, choice->kernel_version, choice->because};
      }
    }
    line.emplace(std::move(engines), std::move(request), devices, std::move(preferred));
    // Last, so that what an engine lacks besides is said first.
    if (const std::string flaw = flaw_of_input_types(*model); !flaw.empty()) {
      fail(ErrorCode::not_supported, "Session", flaw);
    }
  }

  /// Nothing is kept in silence where the user has named a folder that cannot be.
  void check_cache_dir() const {
    if (!execution.cache_compiled || execution.cache_dir.empty() || execution.engine == "native") return;
    const std::string flaw = flaw_of_cache_folder(execution.cache_dir);
    if (!flaw.empty()) fail(ErrorCode::io_error, "Session", "cache_dir of the execution policy: " + flaw);
  }

  /// Other engines read the model's file, which is one of floats.
  void check_calibrated_here() const {
    if (!quantization || execution.engine == "auto" || execution.engine == "native") return;
    fail(ErrorCode::not_supported, "Session",
         "engine " + execution.engine +
             " reads files; write the model with quantize, and load that file without calibration");
  }

  std::chrono::milliseconds timeout() const {
    constexpr std::int64_t most = std::int64_t{1000} * 60 * 60 * 24 * 365;  // never
    return std::chrono::milliseconds(std::min(execution.execution_timeout_ms, most));
  }
  CompiledModel& for_inputs(std::span<const TensorSpec> inputs) const {
    check_inputs(*model, execution, inputs);
    return *line->current().compiled;
  }

  std::vector<Tensor> run_by(const PickedEngine& engine, std::span<const Tensor> inputs, GivenOutputs outputs) const {
    const auto is_here = [](const Tensor& tensor) { return tensor.device().type == DeviceType::cpu; };
    if (engine.record.engine == "native" || std::all_of(inputs.begin(), inputs.end(), is_here)) {
      return run_into(engine, inputs, outputs);  // native copies by itself
    }
    std::vector<Tensor> copies;
    for (const Tensor& tensor : inputs) copies.push_back(devices.copy_to(tensor, Device{}));
    return run_into(engine, copies, outputs);
  }

  std::vector<Tensor> run_into(const PickedEngine& engine, std::span<const Tensor> inputs, GivenOutputs outputs) const {
    std::optional<ScopedSpan> span;
    if (dispatcher.logging_enabled()) {
      span.emplace(dispatcher, model->path.empty() ? "model" : model->path, "run",
                   std::vector<std::pair<std::string, std::string>>{{"engine", engine.record.engine},
                                                                    {"version", engine.record.version},
                                                                    {"because", engine.record.because}});
    }
    std::vector<Tensor> results = outputs.empty() ? engine.compiled->run(inputs, timeout())
                                                  : engine.compiled->run_into(inputs, outputs, timeout());
    if (engine.record.engine != "native") check_results(*model, engine.record.engine, results);
    if (outputs.empty()) return results;
    check_given(outputs, specs_of(results));
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (!outputs[i]) continue;
      if (results[i].data() != outputs[i]->data()) copy(results[i], *outputs[i]);
      results[i] = *outputs[i];
    }
    return results;
  }

  void copy(const Tensor& from, const Tensor& to) const {
    const Tensor here = devices.copy_to(from, to.device());
    const Tensor *input = &here, *output = &to;
    const ScopedPolicy plain(dispatcher, dispatcher.make_scope({}, {}, LockUse{}));  // no part of the model
    dispatcher.dispatch({.op = OpId::copy, .inputs = {&input, 1}, .outputs = {&output, 1}});
  }

  /// Whether another engine may do what one refuses in a run: not what a lock or a policy asks of native, and nothing
  /// that is recorded for a graph of the device.
  bool may_go_on() const { return execution.engine == "auto" && !is_for_native && may_change(); }
  /// The same where the policy declares it.
  bool may_fall_back(const PickedEngine& engine) const {
    return execution.allow_fallback && *execution.allow_fallback != engine.record.target && may_change();
  }
  bool may_change() const {
    const ScopedPolicy entered(dispatcher, scope);
    const std::optional<LockUse> lock = dispatcher.lock();
    if (!lock || lock->lock != nullptr) return false;
    const Device device{line->current().record.target, 0};
    return !devices.has(device) || !devices.driver(device).capturing(device.index, current_stream(device));
  }

  const PickedEngine* next(const PickedEngine& engine, const Error& error) {
    const ScopedPolicy entered(dispatcher, scope);
    return &line->after(engine, std::string(error.message()));
  }

  std::vector<Tensor> run(std::span<const Tensor> inputs, GivenOutputs outputs = {}) {
    check_inputs(*model, execution, specs_of(inputs));
    check_outputs(*model, inputs, outputs);
    for (const PickedEngine* engine = &line->current();;) {
      try {
        std::vector<Tensor> results = run_by(*engine, inputs, outputs);
        if (engine != &line->current()) line->keep(*engine);
        return results;
      } catch (const EngineLacks& error) {
        if (!may_go_on()) throw;
        engine = next(*engine, error);
      } catch (const CompileTimeout& error) {
        if (!may_fall_back(*engine)) throw;
        engine = next(*engine, error);
      }
    }
  }

  const std::shared_ptr<const Model> model;
  const std::optional<QuantizationReport> quantization;
  const ExecutionPolicy execution;
  Dispatcher& dispatcher;
  const DeviceManager& devices;
  ScopePtr scope = {};
  bool is_for_native = false;
  std::optional<EngineLine> line = {};
};

Session::Session(Model model, Dispatcher& dispatcher, const DeviceManager& devices, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(quantization::prepared(std::move(model), dispatcher, devices, options), dispatcher,
                                   devices, options)) {}
Session Session::load(const std::string& path, Dispatcher& dispatcher, const DeviceManager& devices,
                      const SessionOptions& options) {
  return {load_onnx(path), dispatcher, devices, options};
}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

const Model& Session::model() const { return *impl_->model; }
const std::vector<ModelValue>& Session::inputs() const { return impl_->model->graph.inputs; }
const std::vector<ModelValue>& Session::outputs() const { return impl_->model->graph.outputs; }
const std::optional<QuantizationReport>& Session::quantization() const { return impl_->quantization; }
void Session::lock_engine(KernelLock& lock) const {
  const LockedEngine engine = locked_engine(model(), impl_->execution, record());
  lock.add(engine, environment_for(impl_->devices, record().target));
}
const ScopePtr& Session::scope() const { return impl_->scope; }
const SessionRecord& Session::record() const { return impl_->line->record(); }

std::vector<Tensor> Session::run(std::span<const Tensor> inputs) const { return impl_->run(inputs); }

std::vector<Tensor> Session::run(std::span<const Tensor> inputs, GivenOutputs outputs) const {
  return impl_->run(inputs, outputs);
}

std::vector<SessionStep> Session::explain(std::span<const TensorSpec> inputs) const {
  return impl_->for_inputs(inputs).explain(inputs);
}

std::vector<SessionStep> Session::explain(std::span<const Tensor> inputs) const {
  return impl_->for_inputs(specs_of(inputs)).explain(inputs);
}

SessionProfile Session::profile(std::span<const Tensor> inputs, std::int64_t runs) const {
  if (runs < 1 || runs > 1'000'000) {
    fail(ErrorCode::invalid_argument, "Session", std::to_string(runs) + " runs; give a number from 1 to 1000000");
  }
  std::vector<double> whole;
  for (std::int64_t i = 0; i <= runs; ++i) {  // the first decides
    const auto start = std::chrono::steady_clock::now();
    run(inputs);
    if (i > 0) whole.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  SessionProfile profile = impl_->for_inputs(specs_of(inputs)).profile(inputs, runs, impl_->timeout());
  profile.runs = runs;
  profile.run_us = median_of(whole) * 1e6;
  return profile;
}

std::uint64_t Session::memory_bytes(std::span<const TensorSpec> inputs) const {
  return impl_->for_inputs(inputs).memory_bytes(inputs);
}

std::uint64_t Session::memory_bytes(std::span<const Tensor> inputs) const {
  return impl_->for_inputs(specs_of(inputs)).memory_bytes(inputs);
}

}  // namespace xpuruntime
