#pragma once

#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

/// Memory on a device of the default runtime with one value in every element. Written by hand, not by an op: a lock or
/// a policy in force has no say in what the caller did not ask for.
Tensor constant(DataType dtype, const Dims& shape, double value, Device device);

}  // namespace xpuruntime
