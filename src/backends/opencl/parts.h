#pragma once

#include <cstdint>
#include <string>

#include "backends/opencl/launch.h"

namespace xpuruntime::opencl {

// What goes through its tensors in parts of rows: the host's side of kernels/parts.cl.

/// Elements of a work-item: PART there.
std::int64_t part_of(const Problem& problem, const DeviceProfile& profile);

/// Of two inputs, which may be the same one, and the output.
Rows rows_of(const TensorSpec& a, const TensorSpec& b, const TensorSpec& c, Order order = Order::by_output);

/// How far the second operand begins behind the first, where silu_mul has both in one tensor.
std::int64_t between_halves(const Problem& problem);

/// A launch of `function` for all parts; `source` is to be behind parts.cl.
LaunchSpec part_launch(const Rows& rows, const Problem& problem, const PrepareContext& context, std::string_view source,
                       const char* function);

}  // namespace xpuruntime::opencl
