#include "core/xxh64.h"

#include <bit>
#include <cstring>

namespace xpuruntime {
namespace {

constexpr std::uint64_t prime_1 = 0x9e3779b185ebca87, prime_2 = 0xc2b2ae3d27d4eb4f, prime_3 = 0x165667b19e3779f9,
                        prime_4 = 0x85ebca77c2b2ae63, prime_5 = 0x27d4eb2f165667c5;

// The checksum is defined on little-endian numbers, which all our machines have.
static_assert(std::endian::native == std::endian::little);

template <class T>
T take(std::span<const std::byte>& bytes) {
  T number;
  std::memcpy(&number, bytes.data(), sizeof number);
  bytes = bytes.subspan(sizeof number);
  return number;
}

std::uint64_t mixed(std::uint64_t lane, std::uint64_t number) {
  return std::rotl(lane + number * prime_2, 31) * prime_1;
}

/// Four lanes, so that no multiplication waits for the one before.
std::uint64_t mix_blocks(std::span<const std::byte>& bytes) {
  std::uint64_t lanes[4] = {prime_1 + prime_2, prime_2, 0, 0 - prime_1};
  while (bytes.size() >= sizeof lanes) {
    for (std::uint64_t& lane : lanes) lane = mixed(lane, take<std::uint64_t>(bytes));
  }
  std::uint64_t sum =
      std::rotl(lanes[0], 1) + std::rotl(lanes[1], 7) + std::rotl(lanes[2], 12) + std::rotl(lanes[3], 18);
  for (const std::uint64_t lane : lanes) sum = (sum ^ mixed(0, lane)) * prime_1 + prime_4;
  return sum;
}

}  // namespace

std::uint64_t xxh64(std::span<const std::byte> bytes) {
  const std::uint64_t size = bytes.size();
  std::uint64_t sum = (size < 32 ? prime_5 : mix_blocks(bytes)) + size;
  while (bytes.size() >= 8) sum = std::rotl(sum ^ mixed(0, take<std::uint64_t>(bytes)), 27) * prime_1 + prime_4;
  if (bytes.size() >= 4) sum = std::rotl(sum ^ take<std::uint32_t>(bytes) * prime_1, 23) * prime_2 + prime_3;
  while (!bytes.empty()) sum = std::rotl(sum ^ take<std::uint8_t>(bytes) * prime_5, 11) * prime_1;
  sum = (sum ^ sum >> 33) * prime_2;
  sum = (sum ^ sum >> 29) * prime_3;
  return sum ^ sum >> 32;
}

}  // namespace xpuruntime
