#pragma once

#include "backends/cuda/launch.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cuda {

/// What a problem of matmul or linear asks for beyond the sums.
Finish finish_of(const Problem& problem);

/// All but f64 scale in f32: "alpha or beta does not fit in f32"
Verdict scalars_fit(const Problem& problem, const DeviceProfile& profile);
/// "one stride does not walk the batch"
Verdict has_one_batch_stride(const MatmulShape& shape);

/// The third input with the output's shape, its strides 0 where it is broadcast.
TensorSpec broadcast_c(const Problem& problem);

/// The launch that finishes sums of this dtype.
FinishLaunch finish_launch(const Problem& problem, DataType sums, bool in_place);

}  // namespace xpuruntime::cuda
