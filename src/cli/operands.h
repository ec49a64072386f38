#pragma once

#include <cstdint>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime::cli {

/// The tensors of one call, and the call on them.
class Operands {
 public:
  Operands(std::vector<Tensor> inputs, std::vector<Tensor> outputs);

  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  /// Good as long as this object stays where it is.
  Call call(const Problem& problem) const;

 private:
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<const Tensor*> output_pointers_;
};

/// Random inputs and blank outputs on the problem's device, with exactly its strides and alignments. The same seed
/// gives the same numbers on every machine. Floats are uniform in [-1, 1] (where only positive ones make sense, in
/// [0.125, 1.125]), rounded to the dtype; integers are small. What no element covers, and every output, is filled with
/// ones in all bits (NaN in floats): a kernel that reads beside its inputs or leaves an output out shows.
Operands random_operands(const DeviceManager& devices, const Problem& problem, std::uint64_t seed);

/// Fails with out_of_memory where the problem cannot fit the device, or with its check (in float64) the host.
void check_memory(const DeviceManager& devices, const Problem& problem, bool checked);

}  // namespace xpuruntime::cli
