#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace xpuruntime {

/// The XXH64 checksum: as fast as memory is read. It finds damage and changes; who wants two texts with the same one
/// can make them, so where content comes from others take Sha256.
std::uint64_t xxh64(std::span<const std::byte> bytes);

}  // namespace xpuruntime
