#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "xpuruntime/dispatch/call.h"

// The signature of a call: the words that a decision may depend on, read in place from the tensors. Nothing is copied
// on the way to a hit. The hash only finds the slot; every word is compared.

namespace xpuruntime::signature {

inline std::uint64_t head_word(const Call& call) {
  const std::size_t attribute_words = call.attributes == nullptr ? 0 : call.attributes->words().size();
  return static_cast<std::uint64_t>(call.op) | static_cast<std::uint64_t>(call.direction) << 16 |
         static_cast<std::uint64_t>(call.inputs.size()) << 24 | static_cast<std::uint64_t>(call.outputs.size()) << 40 |
         static_cast<std::uint64_t>(attribute_words) << 56;
}

/// Each part times an odd number of its own, summed: the products do not wait for each other. Tensors bring their hash.
/// False where a tensor is a null pointer: such a call is no hit, and the slow path says what is wrong with it.
inline bool hash(const Call& call, std::uint64_t head, std::uint64_t stamp, std::uint64_t& out) {
  std::uint64_t sum = head * 0x9e3779b97f4a7c15ULL + stamp * 0xc2b2ae3d27d4eb4fULL;
  std::uint64_t factor = 0x165667b19e3779f9ULL;
  const auto add = [&](std::uint64_t word) {
    sum += word * factor;
    factor = factor * 5 + 2;  // stays odd
  };
  if (call.attributes != nullptr) {
    for (const std::int64_t word : call.attributes->words()) add(static_cast<std::uint64_t>(word));
  }
  for (const Tensor* tensor : call.inputs) {
    if (tensor == nullptr) return false;
    add(tensor->hash());
  }
  for (const Tensor* tensor : call.outputs) {
    if (tensor == nullptr) return false;
    add(tensor->hash());
  }
  out = sum ^ sum >> 29;
  return true;
}

/// Four extents or strides at a time: unused ones are 0 in every Dims, so ranks up to four need no loop.
inline std::uint64_t difference(const std::int64_t* values, const std::uint64_t* words) {
  return (static_cast<std::uint64_t>(values[0]) ^ words[0]) | (static_cast<std::uint64_t>(values[1]) ^ words[1]) |
         (static_cast<std::uint64_t>(values[2]) ^ words[2]) | (static_cast<std::uint64_t>(values[3]) ^ words[3]);
}

inline bool is_simple(const Tensor& tensor) { return tensor.contiguous() && tensor.shape().size() <= 4; }

/// The words of one stored signature.
class Words {
 public:
  /// Of a call whose tensors are there. `stamp` stands for the scope and the registry's generation.
  Words(const Call& call, std::uint64_t stamp);

  /// Whether this is the signature of the call.
  bool match(const Call& call, std::uint64_t head, std::uint64_t stamp) const {
    const std::uint64_t* words = words_.data();
    if (words[0] != head) return false;  // from here on both have as many attributes and tensors
    std::uint64_t different = words[1] ^ stamp;
    words += 2;
    if (call.attributes != nullptr) {
      for (const std::int64_t word : call.attributes->words()) different |= static_cast<std::uint64_t>(word) ^ *words++;
    }
    if (!simple_) [[unlikely]]
      return different == 0 && match_any_layout(call, words);
    // All stored tensors are contiguous and of rank four at most, so the shape says it all. One of another layout has
    // another meta word. No branch until the end: it nearly always matches.
    const auto compare = [&](std::span<const Tensor* const> tensors) {
      for (const Tensor* tensor : tensors) {
        different |= (tensor->meta() ^ words[0]) | difference(tensor->shape().data(), words + 1);
        words += 5;
      }
    };
    compare(call.inputs);
    compare(call.outputs);
    return different == 0;
  }

 private:
  static bool match_any_layout(const Call& call, const std::uint64_t* words);

  std::vector<std::uint64_t> words_;
  bool simple_ = true;
};

}  // namespace xpuruntime::signature
