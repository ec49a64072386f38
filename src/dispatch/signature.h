#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "xpuruntime/dispatch/call.h"

// The signature of a call: the words that a decision may depend on, read in place from the tensors. Nothing is copied
// on the way to a hit; the hash only finds the slot, and every word is compared.

namespace xpuruntime::signature {

inline constexpr std::size_t multiplier_count = 64;

constexpr std::array<std::uint64_t, multiplier_count> make_multipliers() {
  std::array<std::uint64_t, multiplier_count> out = {};
  std::uint64_t state = 0x5851f42d4c957f2dULL;
  for (std::uint64_t& value : out) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    value = (state ^ state >> 29) | 1;
  }
  return out;
}
inline constexpr auto multipliers = make_multipliers();

inline std::uint64_t head_word(const Call& call) {
  const std::size_t attribute_words = call.attributes == nullptr ? 0 : call.attributes->words().size();
  return static_cast<std::uint64_t>(call.op) | static_cast<std::uint64_t>(call.direction) << 16 |
         static_cast<std::uint64_t>(call.inputs.size()) << 24 | static_cast<std::uint64_t>(call.outputs.size()) << 40 |
         static_cast<std::uint64_t>(attribute_words) << 56;
}

template <class Visit>
inline bool visit_tensor(const Tensor* tensor, Visit& visit) {
  if (tensor == nullptr || !visit(tensor->meta())) return false;
  for (const std::int64_t extent : tensor->shape()) {
    if (!visit(static_cast<std::uint64_t>(extent))) return false;
  }
  if (tensor->contiguous()) return true;  // the shape says it all
  for (const std::int64_t stride : tensor->strides()) {
    if (!visit(static_cast<std::uint64_t>(stride))) return false;
  }
  return true;
}

/// Hands each word to `visit` until it returns false. `stamp` stands for the scope and the registry's generation.
/// A null tensor ends the walk too: such a call is no hit, and the slow path says what is wrong with it.
template <class Visit>
inline bool visit_words(const Call& call, std::uint64_t stamp, Visit visit) {
  if (!visit(head_word(call)) || !visit(stamp)) return false;
  if (call.attributes != nullptr) {
    for (const std::int64_t word : call.attributes->words()) {
      if (!visit(static_cast<std::uint64_t>(word))) return false;
    }
  }
  for (const Tensor* tensor : call.inputs) {
    if (!visit_tensor(tensor, visit)) return false;
  }
  for (const Tensor* tensor : call.outputs) {
    if (!visit_tensor(tensor, visit)) return false;
  }
  return true;
}

/// Each word times its own odd number, summed: the products do not wait for each other.
inline std::uint64_t hash(const Call& call, std::uint64_t stamp) {
  std::uint64_t sum = 0;
  std::size_t i = 0;
  visit_words(call, stamp, [&](std::uint64_t word) {
    sum += (word ^ word >> 32) * multipliers[i++ % multiplier_count];
    return true;
  });
  return sum ^ sum >> 32;
}

/// Whether `words` is the signature of this call; `words` has as many as the call's head and tensors imply.
inline bool matches(const std::uint64_t* words, const Call& call, std::uint64_t stamp) {
  return visit_words(call, stamp, [&](std::uint64_t word) { return word == *words++; });
}

inline std::vector<std::uint64_t> collect(const Call& call, std::uint64_t stamp) {
  std::vector<std::uint64_t> words;
  visit_words(call, stamp, [&](std::uint64_t word) {
    words.push_back(word);
    return true;
  });
  return words;
}

}  // namespace xpuruntime::signature
