#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/dispatch/dispatcher.h"
#include "xpuruntime/graph/engine.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/graph/model.h"
#include "xpuruntime/graph/quantize.h"
#include "xpuruntime/tune/store.h"

namespace xpuruntime {

/// All operators of a model that `native` lacks, by name. Empty: it takes the model; a node may still
/// be refused for what its attributes or shapes ask.
std::vector<MissingOp> missing_ops(const Model& model);

/// What one node of the model became, for one set of input shapes.
enum class StepKind : std::uint8_t {
  kernel,    // a call, which was decided
  view,      // the same memory under another shape
  constant,  // computed once, when the shapes were first seen
  fused,     // a part of the call of another node
  transfer,  // no part of the model: a copy between the session's device and the CPU, which has kernels that it lacks
};
std::string_view to_string(StepKind kind);

/// A copy that a run makes between devices.
struct Transfer {
  Device source = {};
  Device destination = {};
  std::uint64_t bytes = 0;
};
/// "copy to cpu:0"
std::string to_string(const Transfer& transfer);

struct SessionStep {
  std::string node = {};  // the model's name for it, or "MatMul #3"
  std::string op = {};    // ONNX's: "Conv"
  StepKind kind = StepKind::kernel;
  std::optional<Decision> decision = {};  // of a kernel; a node may become several steps
  TensorSpec output = {};                 // of the first result
  std::string output_name = {};
  std::string fused_into = {};            // of what is fused: the node whose call it is a part of
  std::vector<std::string> fused = {};    // of a kernel: the nodes that are parts of its call, besides its own
  std::optional<Transfer> transfer = {};  // whose node is the one that reads or makes what is copied
};

/// What one call of a model's runs takes.
struct CallTime {
  std::string node = {};    // as in SessionStep
  std::string op = {};      // ONNX's
  std::string kernel = {};  // or "copy to cpu:0": a transfer
  Problem problem = {};
  std::int64_t count = 1;               // how often a run makes it: as often as the loop goes round whose body has it
  double time_us = 0;                   // of all of these, the median of the runs
  double share = 0;                     // of the sum of all calls' times
  std::vector<std::string> fused = {};  // the nodes that are parts of the call
};

/// Where the time of a run goes.
struct SessionProfile {
  std::vector<CallTime> calls = {};  // in the order that they run in
  std::int64_t runs = 0;
  double sum_us = 0;  // of the calls
  double run_us = 0;  // of a whole run that is not watched, the median
};

struct SessionOptions {
  /// Layered over the policy in force where the session is made.
  KernelPolicy policy = {};
  std::optional<LockUse> lock = {};
  /// Where and how; nothing: on the CPU, with optimise level 2.
  std::optional<ExecutionPolicy> execution = {};
  /// With precision f16 or bf16: which ops are computed in it. Nothing: the default rules. Autocast in force where the
  /// session is made has rules of its own, which then count.
  std::shared_ptr<const AmpRules> amp = {};
  /// With precision int8 and a model of floats: what to quantize it by, each as Session::run takes it.
  std::vector<std::vector<Tensor>> calibration = {};
  /// The engines besides `native`; null: none.
  const EngineRegistry* engines = nullptr;
  /// Where engine "auto" looks for what measure_engines found; null: nowhere.
  std::shared_ptr<MeasurementStore> store = {};
};

/// A model that runs, by the engine that the execution policy names or that is chosen; by `native` each node by a
/// kernel that was decided once for the shapes of the inputs. Runs may go on in many threads at once. The dispatcher
/// and the devices outlive it.
class Session {
 public:
  /// A model that no engine takes is one error with the reason of each, and all operators that `native` lacks.
  Session(Model model, Dispatcher& dispatcher, const DeviceManager& devices, const SessionOptions& options = {});
  /// The same of an ONNX file.
  static Session load(const std::string& path, Dispatcher& dispatcher, const DeviceManager& devices,
                      const SessionOptions& options = {});
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  const Model& model() const;
  const std::vector<ModelValue>& inputs() const;
  const std::vector<ModelValue>& outputs() const;
  /// Where the model was quantized when the session was made.
  const std::optional<QuantizationReport>& quantization() const;
  /// Which engine runs it, where, and why.
  const SessionRecord& record() const;
  /// Puts into a lock which engine that is: a session of the model under that lock has the same one, or is an error.
  /// record_lock (runtime/replay.h) adds the kernels of native's calls.
  void lock_engine(KernelLock& lock) const;
  /// What is in force in its runs.
  const ScopePtr& scope() const;

  /// Results in the order of outputs(), in new memory. Inputs in the order of inputs(); a wrong number, dtype or shape
  /// is an error that lists what is expected. The first run with new shapes decides and plans for them.
  std::vector<Tensor> run(std::span<const Tensor> inputs) const;

  /// The same into memory of the caller's: for each output a tensor, or nothing for new memory, or none at all. One of
  /// another dtype, shape or rank, that is read-only, not contiguous, or in the memory of an input or another output is
  /// an error before anything is written. A run that fails may leave half of its results there.
  std::vector<Tensor> run(std::span<const Tensor> inputs, std::span<const std::optional<Tensor>> outputs) const;

  /// What runs for inputs of these specs.
  std::vector<SessionStep> explain(std::span<const TensorSpec> inputs) const;
  /// Runs so many times with these inputs and measures each call. On a device that works on by itself each call is
  /// waited for.
  SessionProfile profile(std::span<const Tensor> inputs, std::int64_t runs = 20) const;
  /// Bytes of the device's memory between the inputs and the outputs of one run, without kernels' workspace.
  std::uint64_t memory_bytes(std::span<const TensorSpec> inputs) const;

  /// The same for these very inputs: also for a model in which the values of some determine shapes, branches and loops.
  /// Such a model may run as several programs; memory is that of the largest.
  std::vector<SessionStep> explain(std::span<const Tensor> inputs) const;
  std::uint64_t memory_bytes(std::span<const Tensor> inputs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace xpuruntime
