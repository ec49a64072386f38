#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/device_manager.h"

namespace xpuruntime {

/// The tensors of one call.
class Operands {
 public:
  Operands(std::vector<Tensor> inputs, std::vector<Tensor> outputs);
  // Moved vectors keep their elements where they are, so the pointers stay right.
  Operands(Operands&&) = default;
  Operands& operator=(Operands&&) = default;
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// As a call takes them; good as long as this object lives.
  std::span<const Tensor* const> input_pointers() const { return input_pointers_; }
  std::span<const Tensor* const> output_pointers() const { return output_pointers_; }

 private:
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<const Tensor*> output_pointers_;
};

/// Random inputs and blank outputs on the problem's device, with exactly its strides and alignments. The same seed
/// gives the same numbers on every machine. Floats are uniform in [-1, 1] (where only positive ones make sense, in
/// [0.125, 1.125]), rounded to the dtype; integers are small. In large
/// tensors the numbers repeat. What no element covers, and every output, is filled with
/// ones in all bits (NaN in floats): a kernel that reads beside its inputs or leaves an output out shows.
Operands random_operands(const DeviceManager& devices, const Problem& problem, std::uint64_t seed);

/// Fills the outputs with ones in all bits again.
void blank_outputs(const DeviceManager& devices, const Operands& operands);

/// The same with any memory of the device.
void blank_memory(const DeviceManager& devices, Device device, void* memory, std::size_t bytes);

/// The numbers that random_operands put into the inputs, once more: for when a kernel wrote to them.
void refill_inputs(const DeviceManager& devices, const Problem& problem, std::uint64_t seed, const Operands& operands);

/// Changes with any byte of the inputs, which must be on the CPU.
std::uint64_t hash_of_inputs(const Operands& operands);

/// Fails with out_of_memory where the problem cannot fit the device, or with its check (in float64) the host.
void check_memory(const DeviceManager& devices, const Problem& problem, bool checked);
/// What it fails with; empty: it does not.
std::string flaw_of_memory(const DeviceManager& devices, const Problem& problem, bool checked);

/// About how long it takes to make the problem's tensors.
double seconds_to_make(const Problem& problem);

}  // namespace xpuruntime
