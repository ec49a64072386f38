#pragma once

#include <cstddef>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

// One element at an address of any alignment, as a double: every dtype but large i64 values is exact.
double load_element(DataType dtype, const std::byte* from);
/// Rounds to nearest where the dtype is narrower.
void store_element(DataType dtype, std::byte* to, double value);

}  // namespace xpuruntime
