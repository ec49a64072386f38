#pragma once

#include <span>

#include "xpuruntime/core/tensor.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {

/// How far results on the host are from others, of the output where it is most: of floats the largest difference by the
/// largest magnitude that is expected, of others the share of elements that differ. Infinite where dtypes, shapes or
/// NaNs do.
double difference_of(std::span<const Tensor> expected, std::span<const Tensor> found);

/// What rounding explains of it: 1 %, and 10 % where a model or its precision has floats under 32 bits or codes.
double most_difference(const Model& model, DataType precision);

}  // namespace xpuruntime
