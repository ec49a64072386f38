#include "xpuruntime/graph/session.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "core/printable.h"
#include "graph/native/engine.h"
#include "graph/native/graph_runs.h"
#include "graph/native/lowering.h"
#include "graph/native/report.h"
#include "graph/onnx/element_type.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

bool has_no_value(const ModelNode& node) {
  return std::any_of(node.attributes.begin(), node.attributes.end(),
                     [](const auto& attribute) { return std::holds_alternative<std::monostate>(attribute.second); });
}

void count_missing(const ModelGraph& graph, std::map<std::string, std::size_t>& counts) {
  for (const auto& [name, type] : graph.unread_constants) ++counts["constants of " + onnx::element_type_text(type)];
  for (const ModelNode& node : graph.nodes) {
    if (native::is_branch(node) || native::is_control(node)) {
      for (const auto& [name, value] : node.attributes) {
        const auto* branch = std::get_if<std::shared_ptr<const ModelGraph>>(&value);
        if (branch != nullptr) count_missing(**branch, counts);
      }
    } else if (native::find_operator(node) == nullptr) {
      ++counts[native::operator_name(node)];
    } else if (node.domain.empty() && node.op == "Constant" && has_no_value(node)) {
      ++counts["constants of a type that no op here reads"];
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
    case StepKind::transfer:
      return "transfer";
  }
  return "?";
}

std::string to_string(const Transfer& transfer) { return "copy to " + to_string(transfer.destination); }

std::vector<MissingOp> missing_ops(const Model& model) {
  std::map<std::string, std::size_t> counts;
  count_missing(model.graph, counts);
  std::vector<MissingOp> missing;
  for (const auto& [name, count] : counts)
    missing.push_back({name, "there is no kernel for it in this version", count});
  std::map<std::string, MissingOp> inputs;  // by type, with their names
  for (const ModelValue& input : model.graph.inputs) {
    if (input.dtype || input.type.empty()) continue;
    MissingOp& found = inputs[input.type];
    found.op += (found.nodes++ == 0 ? "inputs of " + onnx::element_type_text(input.type) : "") + ", '" +
                printable(input.name) + "'";
    found.reason = "no tensor here has this type";
  }
  for (auto& [type, one] : inputs) missing.push_back(std::move(one));
  return missing;
}

namespace native {
namespace {

std::string missing_text(const std::vector<MissingOp>& missing) {
  std::string text;
  for (const MissingOp& one : missing) {
    text += (text.empty() ? "" : ", ") + printable(one.op) + " (" + std::to_string(one.nodes) + ")";
  }
  return "the model has operators that this version cannot run: " + text +
         "; run it with another engine, or export it without them";
}

/// A model whose nodes each run by a kernel that was decided once for the shapes of the inputs.
class NativeModel : public CompiledModel {
 public:
  NativeModel(const EngineRequest& request, Dispatcher& dispatcher, const DeviceManager& devices, ScopePtr scope)
      : model_(*request.model),
        execution_(request.execution),
        dispatcher_(dispatcher),
        scope_(std::move(scope)),
        runs_({model_, dispatcher, devices, Device{request.target, 0}, execution_, on_cpu_}) {}

  std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds timeout) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    return runs_.run(inputs, deadline(timeout));
  }
  std::vector<Tensor> run_into(std::span<const Tensor> inputs, std::span<const std::optional<Tensor>> outputs,
                               std::chrono::milliseconds timeout) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    return runs_.run(inputs, deadline(timeout), {}, outputs);
  }

  std::vector<MissingOp> on_fallback() const override { return on_cpu_.list(); }

  std::vector<SessionStep> explain(std::span<const TensorSpec> inputs) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    const auto ready = runs_.for_specs(inputs, "explain it with inputs instead of shapes");
    return steps_of(model_, *ready, ready->decide(until_prepared()));
  }
  std::vector<SessionStep> explain(std::span<const Tensor> inputs) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    std::vector<SessionStep> steps;
    runs_.each_program(inputs, [&](const Model& model, const auto& ready, std::span<const Tensor>) {
      for (SessionStep& step : steps_of(model, *ready, ready->decide(until_prepared()))) {
        steps.push_back(std::move(step));
      }
    });
    return steps;
  }

  SessionProfile profile(std::span<const Tensor> inputs, std::int64_t runs,
                         std::chrono::milliseconds timeout) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    Profiler profiler;
    const auto timed = [&](const Model& piece, const auto& ready, std::span<const Tensor> given,
                           const Deadline& until) {
      std::vector<double> seconds;
      std::vector<Tensor> results = ready->time(given, until, seconds);
      profiler.add(ready, seconds, [&] { return steps_of(piece, *ready, ready->decide(until_prepared())); });
      return results;
    };
    runs_.run(inputs, deadline(timeout), timed);  // decides, and brings the constants into the cache
    profiler.forget();
    for (std::int64_t i = 0; i < runs; ++i) {
      runs_.run(inputs, deadline(timeout), timed);
      profiler.end_run();
    }
    return profiler.profile();
  }

  std::uint64_t memory_bytes(std::span<const TensorSpec> inputs) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    return runs_.for_specs(inputs, "ask with inputs instead of shapes")->program().memory_bytes;
  }
  std::uint64_t memory_bytes(std::span<const Tensor> inputs) override {
    const ScopedPolicy entered(dispatcher_, scope_);
    std::uint64_t most = 0;
    runs_.each_program(inputs, [&](const Model&, const auto& ready, std::span<const Tensor>) {
      most = std::max(most, ready->program().memory_bytes);
    });
    return most;
  }

 private:
  Deadline until_prepared() const { return {execution_.compile_timeout_ms, "compile_timeout_ms"}; }
  static Deadline deadline(std::chrono::milliseconds timeout) { return {timeout.count(), "execution_timeout_ms"}; }

  const Model model_;
  const ExecutionPolicy execution_;
  Dispatcher& dispatcher_;
  const ScopePtr scope_;
  NodesOnCpu on_cpu_ = {};
  const GraphRuns runs_;
};

class NativeEngine : public Engine {
 public:
  NativeEngine(Dispatcher& dispatcher, const DeviceManager& devices, ScopePtr scope)
      : dispatcher_(dispatcher), devices_(devices), scope_(std::move(scope)) {}

  std::string name() const override { return "native"; }
  std::string version() const override { return XRT_VERSION; }
  std::vector<DeviceType> devices() const override {
    std::vector<DeviceType> types;
    for (const Device device : devices_.devices()) {
      if (types.empty() || types.back() != device.type) types.push_back(device.type);
    }
    return types;
  }
  std::vector<DataType> precisions() const override {
    return {DataType::float32, DataType::float16, DataType::bfloat16, DataType::int8};
  }
  bool runs_on(DeviceType type) const override { return devices_.has({type, 0}); }  // asks no other driver
  EngineVerdict check(const EngineRequest& request) const override {
    const std::vector<MissingOp> missing = missing_ops(*request.model);
    return missing.empty() ? EngineVerdict::yes() : EngineVerdict{missing_text(missing), missing};
  }
  std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const override {
    return std::make_unique<NativeModel>(request, dispatcher_, devices_, scope_);
  }

 private:
  Dispatcher& dispatcher_;
  const DeviceManager& devices_;
  const ScopePtr scope_;
};

}  // namespace

std::shared_ptr<const Engine> make_engine(Dispatcher& dispatcher, const DeviceManager& devices, ScopePtr scope) {
  return std::make_shared<NativeEngine>(dispatcher, devices, std::move(scope));
}

}  // namespace native
}  // namespace xpuruntime
