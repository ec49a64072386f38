#include "graph/native/frame.h"

#include <chrono>

#include "xpuruntime/core/error.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime::native {
namespace {

/// What a view's slot makes of its base.
Tensor view_of(const Tensor& tensor, const Slot& slot) {
  const std::uint64_t offset = static_cast<std::uint64_t>(slot.offset) * size_of(slot.spec.dtype);
  Tensor view(tensor.data(), slot.spec, tensor.device(), tensor.byte_offset() + offset, tensor.owner());
  return tensor.read_only() ? view.as_read_only() : view;
}

/// Slots of kept steps and outputs, and what these are views of.
std::vector<bool> used_slots(const Program& program) {
  std::vector<bool> used(program.slots.size(), false);
  const auto use = [&](int slot) {
    used[static_cast<std::size_t>(slot)] = true;
    used[static_cast<std::size_t>(base_of(program, slot))] = true;
  };
  for (const Step& step : program.steps) {
    for (const int slot : step.inputs) use(slot);
    for (const int slot : step.outputs) use(slot);
  }
  for (const int slot : program.outputs) use(slot);
  return used;
}

}  // namespace

Frame::Frame(const Program& program, const std::vector<std::string>& nodes, const std::vector<Tensor>& constants,
             const HeldBySteps& held, OutputPool& pool, const DeviceManager& devices, Device device)
    : program_(program),
      nodes_(nodes),
      pool_(pool),
      devices_(devices),
      device_(device),
      tensors_(program.slots.size()) {
  const auto allocate = [&](std::uint64_t bytes, Device where) {
    return bytes == 0 ? Tensor() : devices.allocate(DataType::uint8, {static_cast<std::int64_t>(bytes)}, where);
  };
  const Tensor of_device = allocate(program.memory_bytes, device), of_cpu = allocate(program.cpu_memory_bytes, {});
  const std::vector<bool> used = used_slots(program);
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const Slot& slot = program.slots[i];
    if (!used[i]) continue;
    const auto kind = program.slots[static_cast<std::size_t>(base_of(program, static_cast<int>(i)))].kind;
    if (kind == Slot::Kind::input || kind == Slot::Kind::output) {
      bound_.push_back(i);
    } else if (slot.kind == Slot::Kind::constant) {
      tensors_[i] = constants[i];
    } else if (slot.kind == Slot::Kind::memory) {
      const Tensor& memory = slot.on_cpu ? of_cpu : of_device;
      tensors_[i] = Tensor(memory.data(), slot.spec, slot.on_cpu ? Device{} : device, memory.byte_offset() + slot.place,
                           memory.owner());
    } else {
      tensors_[i] = view_of(tensors_[static_cast<std::size_t>(slot.base)], slot);
    }
  }
  for (const Step& step : program.steps) {
    Pointers& pointers = pointers_.emplace_back();
    for (const int slot : step.inputs) pointers.inputs.push_back(&tensors_[static_cast<std::size_t>(slot)]);
    for (const int slot : step.outputs) pointers.outputs.push_back(&tensors_[static_cast<std::size_t>(slot)]);
  }
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step& step = program.steps[i];
    calls_.push_back({.op = step.op,
                      .inputs = pointers_[i].inputs,
                      .outputs = pointers_[i].outputs,
                      .attributes = &step.attributes,
                      .precision = step.precision,
                      .held = held[i].get()});
  }
  sites_.resize(calls_.size());
}

Tensor Frame::output_in(std::size_t slot, GivenOutputs outputs) const {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (program_.outputs[i] == static_cast<int>(slot) && outputs[i]) return *outputs[i];
  }
  return pool_.take(program_.slots[slot].spec, devices_, device_);
}

void Frame::bind(std::span<const Tensor> inputs, GivenOutputs outputs) {
  for (const std::size_t i : bound_) {  // a view comes after what it is of
    const Slot& slot = program_.slots[i];
    if (slot.kind == Slot::Kind::input) {
      tensors_[i] = inputs[slot.input].as_read_only();
    } else if (slot.kind == Slot::Kind::output) {
      tensors_[i] = output_in(i, outputs);
    } else {
      tensors_[i] = view_of(tensors_[static_cast<std::size_t>(slot.base)], slot);
    }
  }
}

/// Lets go of what is the caller's.
std::vector<Tensor> Frame::results() {
  std::vector<Tensor> results;
  for (const int slot : program_.outputs) results.push_back(tensors_[static_cast<std::size_t>(slot)]);
  for (const std::size_t i : bound_) tensors_[i] = {};
  return results;
}

std::vector<Tensor> Frame::run(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline,
                               GivenOutputs outputs) {
  bind(inputs, outputs);
  const auto run_all = [&](const auto& run_one) {
    for (std::size_t i = 0; i < calls_.size(); ++i) {
      deadline.check();
      run_one(i);
    }
  };
  if (dispatcher.logging_enabled()) {
    run_all([&](std::size_t i) {
      const ScopedSpan span(dispatcher, nodes_[i], program_.steps[i].is_transfer ? "copy" : "node");
      run_step(dispatcher, i);
    });
  } else if (program_.is_mixed) {
    run_all([&](std::size_t i) { run_step(dispatcher, i); });
  } else {
    run_all([&](std::size_t i) { dispatcher.dispatch(calls_[i], sites_[i]); });
  }
  return results();
}

void Frame::run_step(Dispatcher& dispatcher, std::size_t step) {
  if (!program_.steps[step].is_transfer) return dispatcher.dispatch(calls_[step], sites_[step]);
  devices_.copy_into(*pointers_[step].inputs[0], *pointers_[step].outputs[0]);
}

std::vector<Tensor> Frame::time(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline,
                                std::vector<double>& seconds) {
  using Clock = std::chrono::steady_clock;
  bind(inputs);
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    deadline.check();
    const auto start = Clock::now();
    run_step(dispatcher, i);
    if (device_.type != DeviceType::cpu) {
      const Status status = devices_.driver(device_).synchronize(device_.index, current_stream(device_));
      if (!status.ok()) fail(status.code(), "Session", status.message());
    }
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  return results();
}

std::vector<Decision> Frame::decide(Dispatcher& dispatcher, std::span<const Tensor> inputs, const Deadline& deadline) {
  bind(inputs);
  std::vector<Decision> decisions;
  for (std::size_t i = 0; i < calls_.size(); ++i) {
    decisions.push_back(program_.steps[i].is_transfer ? Decision() : dispatcher.decide(calls_[i]));
    deadline.check();
  }
  results();
  return decisions;
}

}  // namespace xpuruntime::native
