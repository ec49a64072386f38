#pragma once

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::cpu {

/// Ok if all indices are from 0 to rows - 1; else an error that names the first that is not.
Status check_indices(const TensorSpec& spec, const void* indices, std::int64_t rows);

}  // namespace xpuruntime::cpu
