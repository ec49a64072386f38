#pragma once

#include <optional>

#include "xpuruntime/core/problem.h"

namespace xpuruntime::opencl {

// Classes of problems that one plan serves (Kernel::plan_problem), so that a sequence that grows builds no plan a step.
// An extent that may grow is replaced by one that stands for it: up to 8 itself; above, the largest up to the next
// power of two that is divisible by the same powers of two up to 16. A few for each doubling, and what decides on
// vectors and tiles is the same for all of a class. Kernels choose tiles and teams for the class, so that a plan for
// the problem itself gives the same bits.

/// Batch, queries and keys; heads and their sizes stay.
std::optional<Problem> attention_class(const Problem& problem);
/// The rows of activations and, without weights, every extent: weights of linear layers stay.
std::optional<Problem> product_class(const Problem& problem);
/// Every extent but the halves of silu_mul: elementwise ops, copies and softmaxes.
std::optional<Problem> shape_class(const Problem& problem);
/// The number of rows: the normalised dims and their weights stay.
std::optional<Problem> norm_class(const Problem& problem);
/// The number of tokens of embedding and rope: the tables stay.
std::optional<Problem> token_class(const Problem& problem);

}  // namespace xpuruntime::opencl
