#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/native/constant_casts.h"
#include "graph/native/frame.h"
#include "graph/passes/rewriter.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/graph/engine.h"

namespace xpuruntime::native {

/// The nodes of a session that run on the CPU, as its device lacks kernels for them, of the programs made so far. Safe
/// for many threads.
class NodesOnCpu {
 public:
  void add(const Model& model, const Program& program);
  /// By operator, with the first reason of each.
  std::vector<MissingOp> list() const;

 private:
  mutable Mutex mutex_ = {};
  std::map<std::string, std::pair<std::string, std::string>> nodes_ = {};  // operator and reason, by name
};

/// A program on a device, with the tensors of runs that are over for the next ones.
class ReadyProgram : public std::enable_shared_from_this<ReadyProgram> {
 public:
  /// `values`: the inputs that the program was made for the contents of; nothing for the others.
  /// `nodes`: the name of each step's, which runs that are logged have.
  ReadyProgram(Program program, std::vector<std::string> nodes, std::vector<std::optional<Tensor>> values,
               std::shared_ptr<OutputPool> pool, Dispatcher& dispatcher, const DeviceManager& devices, Device device);

  const Program& program() const { return program_; }
  Device device() const { return device_; }
  /// Whether it was made for such inputs.
  bool fits(std::span<const TensorSpec> specs, std::span<const Tensor> inputs) const;

  /// Safe to call from many threads.
  /// Outputs that do not fit are an error before anything runs; those on another device or less aligned are new memory.
  /// Nobody waits longer than until the deadline for a kernel that is in its call: until a run took much less, runs are
  /// in threads of their own, and their results in new memory. Not so what is recorded for a graph of the device.
  std::vector<Tensor> run(std::span<const Tensor> inputs, const Deadline& deadline, GivenOutputs outputs = {});
  /// By step; nothing of transfers.
  std::vector<Decision> decide(const Deadline& deadline);
  /// Decides, and so has kernels compiled, before the first run.
  void prepare(const Deadline& deadline);
  /// A run, and the seconds of each step.
  std::vector<Tensor> time(std::span<const Tensor> inputs, const Deadline& deadline, std::vector<double>& seconds);

 private:
  std::vector<std::optional<Tensor>> direct(GivenOutputs outputs) const;
  std::vector<Tensor> run_here(std::span<const Tensor> inputs, const Deadline& deadline, GivenOutputs outputs);
  std::unique_ptr<Frame> take_frame();
  void give_back(std::unique_ptr<Frame> frame);
  void wait_for_device() const;
  bool is_captured() const;

  const Program program_;
  const std::vector<std::string> nodes_;
  const std::vector<std::optional<Tensor>> values_;
  const std::shared_ptr<OutputPool> pool_;
  Dispatcher& dispatcher_;
  const DeviceManager& devices_;
  const Device device_;
  std::vector<Tensor> constants_ = {};  // by slot, on the device
  const HeldBySteps held_;
  std::atomic<bool> is_quick_{false};  // against its deadline
  Mutex mutex_ = {};
  std::vector<std::unique_ptr<Frame>> idle_ = {};
};

/// The programs of a model: one for each set of input specs, and for the contents of inputs that shapes depend on.
class Programs {
 public:
  /// What it is given outlives it.
  Programs(const Model& model, Dispatcher& dispatcher, const DeviceManager& devices, Device device,
           const ExecutionPolicy& execution, NodesOnCpu& on_cpu);

  std::shared_ptr<ReadyProgram> for_inputs(std::span<const Tensor> inputs);
  std::shared_ptr<ReadyProgram> for_specs(std::span<const TensorSpec> specs) { return find_or_make(specs, {}); }

 private:
  std::shared_ptr<ReadyProgram> find_or_make(std::span<const TensorSpec> specs, std::span<const Tensor> inputs);
  std::shared_ptr<ReadyProgram> find(std::span<const TensorSpec> specs, std::span<const Tensor> inputs);
  std::shared_ptr<ReadyProgram> make(std::span<const TensorSpec> specs, std::span<const Tensor> inputs) const;
  std::shared_ptr<ReadyProgram> make_in_time(std::span<const TensorSpec> specs, std::span<const Tensor> inputs,
                                             const Deadline& deadline) const;
  PassContext pass_context() const;
  Program compile_for(std::span<const TensorSpec> specs, std::span<const std::optional<Tensor>> values,
                      int optimize_level, const Deadline& deadline) const;

  const Model& model_;
  Dispatcher& dispatcher_;
  const DeviceManager& devices_;
  const Device device_;
  const ExecutionPolicy& execution_;
  NodesOnCpu& on_cpu_;
  mutable ConstantCasts casts_;
  const std::shared_ptr<OutputPool> pool_ = std::make_shared<OutputPool>();
  Mutex making_ = {};  // held while one is made, so that it is made once
  Mutex mutex_ = {};
  std::vector<std::shared_ptr<ReadyProgram>> programs_ = {};  // the latest first
};

}  // namespace xpuruntime::native
