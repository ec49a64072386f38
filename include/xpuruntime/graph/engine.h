#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/graph/execution_policy.h"
#include "xpuruntime/graph/model.h"

// The whole contract of an engine: what runs whole models. docs/engines.md has one in C++ and one in Python.

namespace xpuruntime {

struct SessionStep;
struct SessionProfile;

/// An operator of a model that an engine cannot run, and why.
struct MissingOp {
  std::string op = {};      // "Conv", or "com.microsoft::Gelu"
  std::string reason = {};  // "no kernel for it in this version"
  std::size_t nodes = 0;    // how many nodes of the model have it
};

/// What an engine is asked to run.
struct EngineRequest {
  std::shared_ptr<const Model> model = {};
  ExecutionPolicy execution = {};
  DeviceType target = DeviceType::cpu;  // the policy's, or its fallback
  int threads = 0;                      // how many it may use; 0: as many as the process may
  bool target_is_fixed = false;         // by a lock: the fallback is only for what the target lacks
  std::string only_native = {};         // what is asked of kernels that other engines do not obey; empty: nothing
  bool has_choices = false;             // of kernels, in a policy: for native alone
  /// What CompiledModel::to_cache gave for just this request; null: nothing.
  std::shared_ptr<const std::string> cached = {};
};

/// Whether an engine takes a model.
struct EngineVerdict {
  std::string reason = {};              // empty: it does
  std::vector<MissingOp> missing = {};  // where it can tell: all operators that it lacks

  bool ok() const { return reason.empty(); }
  static EngineVerdict yes() { return {}; }
  static EngineVerdict no(std::string reason) { return {std::move(reason)}; }
};

/// In a run: the engine lacks something that only the run asks for, such as a dtype. With engine "auto" the next one
/// takes the model; what is wrong or too large is another error.
class EngineLacks : public Error {
 public:
  explicit EngineLacks(std::string_view message) : Error(ErrorCode::not_supported, "Session", message) {}
};

/// To make a model ready for the shapes of a run took longer than the policy's compile_timeout_ms: its declared
/// fallback takes the model, from this run on.
class CompileTimeout : public Error {
 public:
  explicit CompileTimeout(std::string_view message) : Error(ErrorCode::timeout, "Session", message) {}
};

/// A model that an engine made ready. Every function is safe from many threads. What one is asked for and cannot tell
/// is `not_supported`.
class CompiledModel {
 public:
  virtual ~CompiledModel() = default;

  /// Inputs fit the model: their number, dtypes and shapes were checked. Results in the order of the model's outputs,
  /// in new memory; the session refuses others than the model's. A run that takes longer ends with ErrorCode::timeout,
  /// and the next one may go on.
  virtual std::vector<Tensor> run(std::span<const Tensor> inputs, std::chrono::milliseconds timeout) = 0;

  /// The same; an engine that can writes into what is given for an output, if it has the result's dtype and shape. The
  /// session copies other results there, or refuses.
  virtual std::vector<Tensor> run_into(std::span<const Tensor> inputs, std::span<const std::optional<Tensor>>,
                                       std::chrono::milliseconds timeout) {
    return run(inputs, timeout);
  }

  /// What was costly to make, in bytes that the same engine takes instead of making it again; empty: nothing.
  virtual std::string to_cache() { return {}; }

  /// Operators of nodes that so far ran on the policy's fallback, as the target lacks them. May grow with runs.
  virtual std::vector<MissingOp> on_fallback() const { return {}; }

  // What it can tell of itself; none of these has to be there.
  virtual std::vector<SessionStep> explain(std::span<const TensorSpec> inputs);
  virtual std::vector<SessionStep> explain(std::span<const Tensor> inputs);
  /// The calls of a run, and their sum; the rest is filled in.
  virtual SessionProfile profile(std::span<const Tensor> inputs, std::int64_t runs, std::chrono::milliseconds timeout);
  virtual std::uint64_t memory_bytes(std::span<const TensorSpec> inputs);
  virtual std::uint64_t memory_bytes(std::span<const Tensor> inputs);
};

/// Runs whole models. Every function is safe from many threads.
class Engine {
 public:
  virtual ~Engine() = default;

  virtual std::string name() const = 0;
  /// Of the engine and its libraries: what was measured or compiled by another version is not used.
  virtual std::string version() const = 0;
  /// Why it is not here and what to install; empty: it is here.
  virtual std::string why_absent() const { return {}; }
  /// What it can run on, on this machine. Asked only of one that is here, like all that follows.
  virtual std::vector<DeviceType> devices() const = 0;
  /// The precisions of an execution policy that it takes, of some model at least; nothing: it does not tell.
  virtual std::vector<DataType> precisions() const { return {}; }
  /// Whether that is one of them, where looking for the others would take time and memory.
  virtual bool runs_on(DeviceType type) const;
  virtual EngineVerdict check(const EngineRequest& request) const = 0;
  /// Whether what it compiles has something to keep.
  virtual bool caches() const { return false; }
  /// Throws if the model turns out to be one that it cannot take. One that takes longer than the policy's
  /// compile_timeout_ms ends with ErrorCode::timeout.
  virtual std::unique_ptr<CompiledModel> compile(const EngineRequest& request) const = 0;
};

/// What an engine is asked where `request` is: for a quantized file in precision int8 one that has no such precision is
/// asked for f32, in which it runs the file's integers all the same.
EngineRequest request_for(const Engine& engine, const EngineRequest& request);

/// The engines besides `native`, in the order in which they are tried. Safe for many threads.
class EngineRegistry {
 public:
  /// One of the same name is replaced. A name is a letter and then letters, digits and underscores, in lower case;
  /// "auto" and "native" are taken.
  void add(std::shared_ptr<const Engine> engine);
  /// Returns whether it was there. Sessions that it runs keep it.
  bool remove(std::string_view name);
  std::vector<std::shared_ptr<const Engine>> engines() const;

 private:
  mutable LongMutex mutex_ = {};
  std::vector<std::shared_ptr<const Engine>> engines_ = {};
};

/// An engine that was asked and does not run the model.
struct EngineRejection {
  std::string engine = {};
  DeviceType target = DeviceType::cpu;
  std::string reason = {};
};

/// Which engine runs a model, and why.
struct SessionRecord {
  std::string engine = {};
  std::string version = {};
  DeviceType target = DeviceType::cpu;
  bool is_fallback = false;  // the target is the policy's fallback
  std::string because = {};
  std::vector<EngineRejection> rejections = {};
  /// Operators that the target lacks for some nodes, which run on the fallback; known once shapes are.
  std::vector<MissingOp> on_fallback = {};
};

}  // namespace xpuruntime
