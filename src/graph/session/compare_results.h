#pragma once

#include <optional>
#include <span>

#include "xpuruntime/core/tensor.h"
#include "xpuruntime/device/device_manager.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime {

/// How far results on the host are from others, of the output where it is most: of floats the largest difference by the
/// largest magnitude that is expected, at least the one given; of others the share of elements that differ. Infinite
/// where dtypes, shapes or NaNs do.
double difference_of(std::span<const Tensor> expected, std::span<const Tensor> found, double least_magnitude = 0);

/// What rounding explains of a difference.
struct ResultBounds {
  double most_difference = 0.01;
  double least_magnitude = 1e-3;  // where all is expected to cancel out
};

/// Of results on these inputs: 1 %, and 10 % where the model or its precision has floats under 32 bits or codes.
/// Nothing of a model that draws random numbers.
std::optional<ResultBounds> result_bounds(const Model& model, DataType precision, std::span<const Tensor> inputs,
                                          const DeviceManager& devices);

}  // namespace xpuruntime
