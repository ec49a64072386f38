#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace xpuruntime {

/// Detects corruption; not cryptographic. Every step maps different words to different states, so that a change within
/// one word of eight bytes always shows.
class Checksum {
 public:
  explicit Checksum(std::uint64_t seed = 0) : state_(seed ^ 0x9e3779b97f4a7c15ULL) {}

  Checksum& add(std::uint64_t word) {
    state_ = (state_ ^ word) * 0xd6e8feb86659fd93ULL;
    state_ ^= state_ >> 32;
    return *this;
  }
  Checksum& add(std::int64_t word) { return add(static_cast<std::uint64_t>(word)); }
  /// With its length, so that two texts in a row are not taken for others that join to the same.
  Checksum& add(std::string_view text) {
    add(std::uint64_t{text.size()});
    while (text.size() >= 8) {
      std::uint64_t word;
      std::memcpy(&word, text.data(), 8);
      add(word);
      text.remove_prefix(8);
    }
    std::uint64_t rest = 0;
    // Byte by byte, not memcpy: g++ cannot see that fewer than eight are left and warns.
    for (std::size_t i = 0; i < text.size(); ++i) rest |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * i);
    return add(rest);
  }

  std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_;
};

}  // namespace xpuruntime
