#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "dispatch/signature.h"

namespace xpuruntime {

/// What one thread keeps by signature. Takes memory for what is in it: a thread that calls little stays small. Nothing
/// is evicted before there are `at_most` entries, a power of two. Then every eighth is, in the order of their hashes:
/// where more take turns than there is room for, the one unused for longest would always be the next one needed.
/// An entry has a `signature`, and `empty()` to let its contents go.
template <class Entry>
class SignatureTable {
 public:
  explicit SignatureTable(std::size_t at_most) : at_most_(at_most) {}

  Entry* find(const Call& call, std::uint64_t stamp) const {
    if (slots_.empty()) return nullptr;
    const std::uint64_t hash = signature::hash(call, stamp);
    for (std::size_t i = first_slot(hash); slots_[i].entry != nullptr; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].hash == hash && slots_[i].entry->signature.match(call, stamp)) return slots_[i].entry;
    }
    return nullptr;
  }

  /// An entry with the call's signature, for the caller to fill. Others stay where they are in memory; evicted ones
  /// keep their contents until release_evicted.
  Entry& insert(const Call& call, std::uint64_t stamp) {
    const bool is_full = 2 * (size_ + 1) > slots_.size();
    // Entries of an older generation never match again: they only keep plans alive.
    if (is_full || generation_ != signature::generation_of(stamp)) make_room(signature::generation_of(stamp));
    Entry& entry = unused();
    entry.signature = signature::Words(call, stamp);
    free_.pop_back();
    put({signature::hash(call, stamp), &entry});
    return entry;
  }

  /// Not while a call of this thread may still run one of them.
  void release_evicted() {
    if (evicted_.empty()) return;
    const bool many = evicted_.size() > free_.size();
    for (; !evicted_.empty(); evicted_.pop_back()) {
      evicted_.back()->empty();
      free_.push_back(evicted_.back());
    }
    if (many) std::sort(free_.begin(), free_.end(), std::greater<>());  // what is filled next lies side by side again
  }

  /// Also those that were evicted and not yet released.
  template <class Function>
  void for_each(Function&& function) const {
    for (const auto& chunk : chunks_) std::for_each_n(chunk.get(), chunk_entries, function);
  }

  void clear() { *this = SignatureTable(at_most_); }

  std::size_t size() const { return size_; }
  /// Places to find an entry by, used or not.
  std::size_t slot_count() const { return slots_.size(); }

 private:
  static constexpr std::size_t fewest_slots = 64;
  static constexpr std::size_t chunk_entries = 16;

  struct Slot {
    std::uint64_t hash = 0;
    Entry* entry = nullptr;
  };

  // The upper bits of the hash are the best mixed.
  std::size_t first_slot(std::uint64_t hash) const { return hash >> shift_; }

  void put(const Slot& slot) {
    std::size_t i = first_slot(slot.hash);
    while (slots_[i].entry != nullptr) i = (i + 1) & (slots_.size() - 1);
    slots_[i] = slot;
    ++size_;
  }

  Entry& unused() {
    if (free_.empty()) {
      // Side by side: what is first called in some order mostly comes in that order again.
      chunks_.push_back(std::make_unique<Entry[]>(chunk_entries));
      for (std::size_t i = chunk_entries; i-- > 0;) free_.push_back(&chunks_.back()[i]);
    }
    return *free_.back();
  }

  void make_room(std::uint32_t generation) {
    std::vector<Slot> kept;
    std::vector<Entry*> gone;
    for (const Slot& slot : slots_) {
      if (slot.entry == nullptr) continue;
      if (signature::generation_of(slot.entry->signature.stamp()) == generation) {
        kept.push_back(slot);
      } else {
        gone.push_back(slot.entry);
      }
    }
    if (kept.size() >= at_most_) {
      for (std::size_t i = 0; i < kept.size(); i += 8) gone.push_back(std::exchange(kept[i].entry, nullptr));
      std::erase_if(kept, [](const Slot& slot) { return slot.entry == nullptr; });
    }
    std::vector<Slot> fresh(std::max(fewest_slots, std::bit_ceil(2 * kept.size() + 2)));
    evicted_.insert(evicted_.end(), gone.begin(), gone.end());
    // Nothing fails from here on.
    slots_.swap(fresh);
    shift_ = 64 - std::countr_zero(slots_.size());
    generation_ = generation;
    size_ = 0;
    for (const Slot& slot : kept) put(slot);
  }

  std::size_t at_most_;
  std::size_t size_ = 0;
  int shift_ = 0;
  std::uint32_t generation_ = 0;
  std::vector<Slot> slots_;  // a power of two of them, at most half in use
  std::vector<std::unique_ptr<Entry[]>> chunks_;
  std::vector<Entry*> free_;
  std::vector<Entry*> evicted_;
};

}  // namespace xpuruntime
