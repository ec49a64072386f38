#pragma once

#include <array>
#include <cstdint>

#include "backends/cpu/base/block.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// What dropout needs to know of one call. Element i is kept if word (i + offset) % 4 of counter (i + offset) / 4
/// is at least `threshold`.
struct DropoutCall {
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;
  std::uint64_t threshold = 0;  // up to 2^32: nothing is kept
  double kept_share = 1;        // 1 - p: kept elements are divided by it
};

/// Reads the second input, seed and offset, where there is one.
DropoutCall dropout_call(const Problem& problem, const RunArguments& arguments);

/// `index` is the number of the block's first element; its rows are in order, without gaps.
void dropout_of_block(const Block& block, const DropoutCall& call, std::uint64_t index);

/// Philox 4x32 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four random words
/// that depend on the key and the counter alone.
struct Philox {
  static constexpr int rounds = 10;
  static constexpr std::uint32_t multiplier_0 = 0xD2511F53, multiplier_1 = 0xCD9E8D57;
  static constexpr std::uint32_t step_0 = 0x9E3779B9, step_1 = 0xBB67AE85;

  static std::array<std::uint32_t, 4> words(std::uint64_t key, std::uint64_t counter) {
    std::array<std::uint32_t, 4> c = {static_cast<std::uint32_t>(counter), static_cast<std::uint32_t>(counter >> 32), 0,
                                      0};
    auto key_0 = static_cast<std::uint32_t>(key), key_1 = static_cast<std::uint32_t>(key >> 32);
    for (int i = 0; i < rounds; ++i) {
      const std::uint64_t p = std::uint64_t{multiplier_0} * c[0], q = std::uint64_t{multiplier_1} * c[2];
      c = {static_cast<std::uint32_t>(q >> 32) ^ c[1] ^ key_0, static_cast<std::uint32_t>(q),
           static_cast<std::uint32_t>(p >> 32) ^ c[3] ^ key_1, static_cast<std::uint32_t>(p)};
      key_0 += step_0;
      key_1 += step_1;
    }
    return c;
  }
};

}  // namespace xpuruntime::cpu
