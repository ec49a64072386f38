#pragma once

#include <string>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime::bench {

/// The tensors of one problem: inputs that make sense for its op, the same on every machine; outputs not set.
class Operands {
 public:
  explicit Operands(const Problem& problem);
  Operands(const Operands&) = delete;
  Operands& operator=(const Operands&) = delete;

  const Problem& problem() const { return problem_; }
  const std::vector<Tensor>& inputs() const { return inputs_; }
  const std::vector<Tensor>& outputs() const { return outputs_; }
  Call call() const;
  /// Forgets what is in the outputs, so that nobody passes for another's work.
  void blank_outputs() const;

 private:
  Problem problem_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
  std::vector<const Tensor*> input_pointers_;
  std::vector<const Tensor*> output_pointers_;
};

/// A contiguous copy, so that it can be kept.
Tensor copy_of(const Tensor& tensor);

/// Empty where two results of the problem agree as far as roundings in their dtype allow, else what differs. Dropout
/// throws its own dice: there the share of zeros and the kept values are looked at.
std::string difference(const Problem& problem, const Tensor& ours, const Tensor& theirs, const Tensor& input);

/// Arithmetic operations of a matrix op, 0 for others.
double flops_of(const Problem& problem);
/// Bytes of all inputs and outputs, each counted once. Rows of a table that are not looked up are not counted.
double bytes_of(const Problem& problem);

}  // namespace xpuruntime::bench
