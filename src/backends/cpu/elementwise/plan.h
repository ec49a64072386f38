#pragma once

#include <memory>

#include "backends/cpu/base/block.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// Fewest elements worth a thread of their own, for ops that do little more than move them and for those that compute.
inline constexpr std::int64_t light_grain = 32768;
inline constexpr std::int64_t heavy_grain = 16384;

/// A plan that goes over the operands' positions in blocks, on several threads where there are enough elements.
/// Each output element must depend on its own inputs alone.
std::unique_ptr<const Plan> make_block_plan(const Problem& problem, RunBlock run_block, std::int64_t grain,
                                            const FunctionParameters& parameters = {});

/// The code for this CPU; null where there is none for these dtypes.
RunBlock find_binary_integers(OpId op, DataType dtype);

/// Stores the block's input times `inverse` in its output, which is f32, and returns whether a product is not finite.
bool unscale_of_block(const Block& block, float inverse);

}  // namespace xpuruntime::cpu
