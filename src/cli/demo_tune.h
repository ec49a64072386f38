#pragma once

#include <string>
#include <vector>

#include "cli/blocks.h"
#include "cli/store_option.h"

namespace xpuruntime::cli {

struct TunedDemo {
  StoreOption store = {};
  std::string folder = ".";
};

/// Tunes every op of the blocks under `deterministic`, shows what that gains, writes policy.json and kernels.lock, and
/// replays the lock: the outputs must have the hashes that were recorded.
Answer tune_blocks(Context& context, const std::vector<Block>& blocks, const TunedDemo& options);

}  // namespace xpuruntime::cli
