#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "xpuruntime/dispatch/call.h"

// The signature of a call: the words that a decision may depend on, read in place from the tensors. Nothing is copied
// on the way to a hit. A hash only finds a slot; every word is compared.

// A warm call should be one run of instructions; left alone, the compiler makes calls of it.
#define XRT_ALWAYS_INLINE inline __attribute__((always_inline))

namespace xpuruntime::signature {

/// What is called and with how many tensors: two calls with equal heads have equally many words.
struct Head {
  std::uint64_t what = 0;
  std::uint64_t counts = 0;
};

XRT_ALWAYS_INLINE Head head_of(const Call& call) {
  const std::uint64_t attributes = call.attributes == nullptr ? 0 : call.attributes->tag();
  const std::uint64_t precision = call.precision ? static_cast<std::uint64_t>(*call.precision) + 1 : 0;
  return {static_cast<std::uint64_t>(call.op) | static_cast<std::uint64_t>(call.direction) << 16 | precision << 24 |
              attributes << 32,
          call.inputs.size() | call.outputs.size() << 32};
}

/// The registry's generation, out of a stamp.
inline std::uint32_t generation_of(std::uint64_t stamp) { return static_cast<std::uint32_t>(stamp); }

/// A call with a null pointer for a tensor is a miss; the slow path says what is wrong with it.
bool has_tensors(const Call& call);

/// Of a call whose tensors are there; they bring their own hash.
std::uint64_t hash(const Call& call, std::uint64_t stamp);

/// Two words at once, on every processor that has registers for it.
using Pair = std::uint64_t __attribute__((vector_size(16), aligned(8), may_alias));

XRT_ALWAYS_INLINE Pair difference(const void* values, const void* words) {
  return *static_cast<const Pair*>(values) ^ *static_cast<const Pair*>(words);
}

inline bool is_zero(Pair pair) { return (pair[0] | pair[1]) == 0; }

/// The words of one stored signature.
class Words {
 public:
  /// Matches no call.
  Words() : near_{~std::uint64_t{0}} {}
  /// Of a call whose tensors are there. `stamp` stands for the scope and the registry's generation.
  Words(const Call& call, std::uint64_t stamp);

  std::uint64_t stamp() const { return words()[2]; }

  /// Whether this is the signature of the call.
  XRT_ALWAYS_INLINE bool match(const Call& call, std::uint64_t stamp) const {
    const std::uint64_t* words = this->words();
    const Head head = head_of(call);
    if (words[0] != head.what || words[1] != head.counts || words[2] != stamp) return false;
    words += 3;
    Pair different = {};
    if (call.attributes != nullptr) {
      const std::span<const std::int64_t> attributes = call.attributes->words();
      // Words past the last are 0 in every Attributes, so an odd one needs no care.
      for (std::size_t i = 0; i < attributes.size(); i += 2) {
        different |= difference(attributes.data() + i, words);
        words += 2;
      }
    }
    if (layout_ == Layout::matrices) [[likely]]
      return match_tensors<1>(call, words, different);
    if (layout_ == Layout::contiguous) return match_tensors<2>(call, words, different);
    return is_zero(different) && match_any_layout(call, words);
  }

 private:
  /// What all stored tensors have in common. Contiguous ones are known by their shape alone.
  enum class Layout : std::uint8_t { matrices, contiguous, any };  // ranks up to 2, up to 4, anything

  // Unused extents are 0 in every Dims, so there is no loop over the rank; a tensor of another rank, layout or dtype
  // has another meta word. No branch until the end: it nearly always matches.
  template <std::size_t pairs>
  XRT_ALWAYS_INLINE static bool match_tensors(const Call& call, const std::uint64_t* words, Pair different) {
    std::uint64_t other_meta = 0;
    for (const Tensor* tensor : call.inputs) {
      if (tensor == nullptr) return false;
      other_meta |= tensor->meta() ^ words[0];
      for (std::size_t i = 0; i < pairs; ++i)
        different |= difference(tensor->shape().data() + 2 * i, words + 1 + 2 * i);
      words += 1 + 2 * pairs;
    }
    for (const Tensor* tensor : call.outputs) {
      if (tensor == nullptr) return false;
      other_meta |= tensor->meta() ^ words[0];
      for (std::size_t i = 0; i < pairs; ++i)
        different |= difference(tensor->shape().data() + 2 * i, words + 1 + 2 * i);
      words += 1 + 2 * pairs;
    }
    return other_meta == 0 && is_zero(different);
  }

  static bool match_any_layout(const Call& call, const std::uint64_t* words);

  // Most signatures lie in place, a product's with all its attributes too: entries of a table are three cache lines
  // each, side by side. Long ones lie elsewhere.
  static constexpr std::size_t near_count = 16;

  XRT_ALWAYS_INLINE const std::uint64_t* words() const { return far_ == nullptr ? near_.data() : far_.get(); }

  std::unique_ptr<std::uint64_t[]> far_;
  Layout layout_ = Layout::matrices;
  std::array<std::uint64_t, near_count> near_;
};

}  // namespace xpuruntime::signature
