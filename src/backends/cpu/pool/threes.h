#pragma once

#include "backends/cpu/pool/rows.h"

namespace xpuruntime::cpu {

/// Whether this is a pool over planes with windows of 3x3 that move by one: they overlap so far that it pays to go down
/// the columns and keep what the rows under the next window gave.
bool is_threes(const PoolShape& shape);

/// The same as run_pool_rows for such a pool; needs no scratch.
void run_pool_threes(const PoolRows& rows, DataType in, DataType out);

}  // namespace xpuruntime::cpu
