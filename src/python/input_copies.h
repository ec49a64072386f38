#pragma once

#include <span>
#include <vector>

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::python {

/// The inputs of a run for a function that may write an output before it has read all inputs: those that share memory
/// with an output are copies. Without the GIL; throws Error where there is no memory for them.
class InputCopies {
 public:
  explicit InputCopies(const RunArguments& arguments);
  InputCopies(const InputCopies&) = delete;
  InputCopies& operator=(const InputCopies&) = delete;

  std::span<const Tensor* const> inputs() const { return inputs_; }

 private:
  std::vector<Tensor> copies_;
  std::vector<const Tensor*> replaced_;  // all inputs, where one of them is a copy
  std::span<const Tensor* const> inputs_;
};

}  // namespace xpuruntime::python
