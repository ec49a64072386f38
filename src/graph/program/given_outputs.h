#pragma once

#include <optional>
#include <span>

#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

/// Memory of the caller's for the outputs of a run, in their order: nothing for one, or none at all, is new memory.
using GivenOutputs = std::span<const std::optional<Tensor>>;

/// Fails where memory that is given is not of the results' dtypes and shapes.
void check_given(GivenOutputs outputs, std::span<const TensorSpec> results);

}  // namespace xpuruntime
