#pragma once

#include <string>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::bench {

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
