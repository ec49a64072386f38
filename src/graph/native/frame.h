#pragma once

#include <span>
#include <vector>

#include "graph/native/deadline.h"
#include "graph/native/output_pool.h"
#include "graph/program/given_outputs.h"
#include "graph/program/program.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/held_constants.h"

namespace xpuruntime::native {

/// By step: what the kernels make of its constants, for all frames of a program; null where it has none.
using HeldBySteps = std::vector<std::unique_ptr<HeldConstants>>;

/// The tensors of one run at a time of a program.
class Frame {
 public:
  Frame(const Program& program, const std::vector<std::string>& nodes, const std::vector<Tensor>& constants,
        const HeldBySteps& held, OutputPool& pool, const DeviceManager& devices, Device device);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  /// Queues every call, and waits for copies. Outputs are of the pool, or those given, which fit.
  std::vector<Tensor> run(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline,
                          GivenOutputs outputs = {});
  /// The same, with the seconds that each step takes.
  std::vector<Tensor> time(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline,
                           std::vector<double>& seconds);
  /// What each call is decided to be, without running it; nothing of a copy.
  std::vector<Decision> decide(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline);

 private:
  struct Pointers {
    std::vector<const Tensor*> inputs = {};
    std::vector<const Tensor*> outputs = {};
  };
  void run_step(Dispatcher& dispatcher, std::size_t step);
  void bind(std::span<const Tensor> inputs, GivenOutputs outputs = {});
  Tensor output_in(std::size_t slot, GivenOutputs outputs) const;
  std::vector<Tensor> results();

  const Program& program_;
  const std::vector<std::string>& nodes_;  // by step
  OutputPool& pool_;
  const DeviceManager& devices_;
  Device device_;
  std::vector<Tensor> tensors_ = {};     // by slot
  std::vector<std::size_t> bound_ = {};  // slots that each run has anew
  std::vector<Pointers> pointers_ = {};  // by step
  std::vector<Call> calls_ = {};         // by step
  std::vector<CallSite> sites_ = {};     // by step
};

}  // namespace xpuruntime::native
