#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "xpuruntime/cache/key_hash.h"
#include "xpuruntime/cache/make_ticket.h"
#include "xpuruntime/cache/value_owner.h"
#include "xpuruntime/core/device.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// What a cache has done so far.
struct CacheStats {
  std::uint64_t hits = 0;       // answered by a stored value, or by one that another thread was making
  std::uint64_t misses = 0;     // found nothing
  std::uint64_t evictions = 0;  // pushed out for want of room; erase, clear and replacing do not count
  std::uint64_t made = 0;       // by makers that succeeded

  bool operator==(const CacheStats&) const = default;
};

/// Keeps the `capacity` values used last. Safe to use from many threads; `get` too takes the one lock, as it reorders.
///
/// Values are shared: one that leaves the cache lives until its last user releases it. Then the destructor callback
/// runs, on whichever thread that is and on the owner's device if one is given, with no lock held, so that it may use
/// the cache. What it throws is contained and reported (cache_errors.h). Raw handles: see `is_handle`.
/// Keys are compared whole; the hash only finds the place. Capacity 0 turns caching off: nothing is kept.
///
/// A cache moves, never copies; a moved-from one is empty, with the same capacity and callback. As with destroying it,
/// no other thread may use it at that time.
template <typename Key, typename Value, typename Hash = KeyHash<Key>, typename Equal = std::equal_to<Key>>
class LRUCache {
 public:
  using Destructor = std::function<void(Value&)>;

  explicit LRUCache(std::size_t capacity = 100, Destructor destructor = nullptr,
                    std::optional<Device> owner = std::nullopt)
      : owner_(std::make_shared<Owner>(std::move(destructor), owner)), capacity_(capacity) {}
  ~LRUCache() { clear(); }

  LRUCache(LRUCache&& other) noexcept : owner_(other.owner_) {
    const std::lock_guard lock(other.mutex_);
    capacity_ = other.capacity_;
    swap_contents(other);
  }
  LRUCache& operator=(LRUCache&& other) noexcept {
    LRUCache taken(std::move(other));  // leaves with what this cache held, after the lock
    const std::lock_guard lock(mutex_);
    std::swap(owner_, taken.owner_);
    std::swap(capacity_, taken.capacity_);
    swap_contents(taken);
    return *this;
  }

  /// The value under `key`, which becomes the one used last; null when there is none.
  std::shared_ptr<Value> get(const Key& key) {
    const std::lock_guard lock(mutex_);
    auto value = touch(key);
    ++(value ? stats_.hits : stats_.misses);
    return value;
  }

  /// Stores `value` in place of what was under `key`, and returns it. The cache owns the value in any case: with
  /// capacity 0 it is destroyed when the caller releases it.
  std::shared_ptr<Value> put(const Key& key, Value value) {
    auto stored = Owner::adopt(owner_, std::make_unique<Value>(std::move(value)));
    Removed removed;
    const std::lock_guard lock(mutex_);
    disown_makes([&](const Make& make) { return Equal{}(make.key, key); });
    insert(key, stored, removed);
    return stored;
  }

  /// The value under `key`, made by `maker()` where there is none. One maker runs while others that ask for the key
  /// wait; if it throws, its caller gets the exception, nothing is kept and the next who waited tries. Makers run with
  /// no lock held and may ask this and other caches for other keys; asking for their own is an error, also in a circle
  /// over several threads. A value whose key is put, erased or cleared meanwhile goes to those who asked, and is not
  /// kept. With capacity 0 each call makes its own.
  template <typename Maker>
  std::shared_ptr<Value> get_or_make(const Key& key, Maker&& maker) {
    std::shared_ptr<Make> own;
    {
      std::unique_lock lock(mutex_);
      if (auto value = touch_or_wait(key, lock)) return value;
      std::erase_if(makes_, [](const auto& make) { return make->ticket.is_orphan(); });
      own = std::make_shared<Make>(key);
      makes_.push_back(own);
      ++stats_.misses;
    }
    try {
      return finish(own, Owner::adopt(owner_, std::unique_ptr<Value>(new Value(std::invoke(maker)))));
    } catch (...) {
      abandon(own);
      throw;
    }
  }

  /// Says whether there was a value.
  bool erase(const Key& key) {
    Removed removed;
    const std::lock_guard lock(mutex_);
    disown_makes([&](const Make& make) { return Equal{}(make.key, key); });
    const auto found = index_.find(&key);
    if (found == index_.end()) return false;
    const auto entry = found->second;
    index_.erase(found);
    removed.splice(removed.end(), entries_, entry);
    return true;
  }

  void clear() { const Removed removed = take_all(); }

  /// Values beyond the new capacity leave, the one unused for longest first.
  void set_capacity(std::size_t capacity) { const Removed removed = resize(capacity); }

  std::size_t capacity() const {
    const std::lock_guard lock(mutex_);
    return capacity_;
  }
  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return entries_.size();
  }
  CacheStats stats() const {
    const std::lock_guard lock(mutex_);
    return stats_;
  }

 private:
  template <typename, typename, typename, typename>
  friend class OpCache;

  using Owner = detail::ValueOwner<Value>;

  struct Entry {
    Key key;
    std::shared_ptr<Value> value;
  };
  using Entries = std::list<Entry>;
  // Entries on their way out. Declared before the lock is taken, so that they die after it is released.
  using Removed = Entries;

  // The index points at the keys in the entries: each key is stored once.
  struct HashKey {
    std::size_t operator()(const Key* key) const { return Hash{}(*key); }
  };
  struct EqualKeys {
    bool operator()(const Key* left, const Key* right) const { return Equal{}(*left, *right); }
  };

  /// A value in the making.
  struct Make {
    explicit Make(const Key& key) : key(key) {}

    const Key key;
    bool keep = true;  // no longer, once its key was put, erased or cleared
    std::shared_ptr<Value> value;
    detail::MakeTicket ticket;
  };

  // All below need the lock, except where they take it themselves.

  std::shared_ptr<Value> touch(const Key& key) {
    const auto found = index_.find(&key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->value;
  }

  /// Null when the caller is to make the value.
  std::shared_ptr<Value> touch_or_wait(const Key& key, std::unique_lock<Mutex>& lock) {
    for (;;) {
      auto value = touch(key);
      const auto other = value ? nullptr : make_to_join(key);
      if (other) {
        other->ticket.wait(lock);
        value = other->value;
      }
      if (value) ++stats_.hits;
      if (value || !other) return value;
    }
  }

  std::shared_ptr<Make> make_to_join(const Key& key) const {
    std::shared_ptr<Make> joined;
    for (const auto& make : makes_) {
      if (!Equal{}(make->key, key)) continue;
      if (make->ticket.is_mine()) detail::fail_circular_make();
      if (make->keep && capacity_ > 0 && !make->ticket.is_orphan()) joined = make;
    }
    return joined;
  }

  std::shared_ptr<Value> finish(const std::shared_ptr<Make>& make, std::shared_ptr<Value> value) {
    Removed removed;
    const std::lock_guard lock(mutex_);
    if (make->keep) insert(make->key, value, removed);
    ++stats_.made;
    make->value = value;
    leave(make);
    return value;
  }

  void abandon(const std::shared_ptr<Make>& make) {
    const std::lock_guard lock(mutex_);
    leave(make);
  }

  void leave(const std::shared_ptr<Make>& make) {
    std::erase(makes_, make);
    make->ticket.finish();
  }

  template <typename Which>
  void disown_makes(Which&& which) {
    for (const auto& make : makes_) {
      if (which(*make)) make->keep = false;
    }
  }

  void insert(const Key& key, const std::shared_ptr<Value>& value, Removed& removed) {
    if (capacity_ == 0) return;
    Entries fresh;
    fresh.push_back({key, value});
    const auto [place, is_new] = index_.try_emplace(&fresh.front().key, fresh.begin());
    if (is_new) {
      entries_.splice(entries_.begin(), fresh);
      evict(removed);
    } else {
      std::swap(place->second->value, fresh.front().value);
      entries_.splice(entries_.begin(), entries_, place->second);
      removed.splice(removed.end(), fresh);
    }
  }

  void evict(Removed& removed) {
    while (entries_.size() > capacity_) {
      const auto oldest = std::prev(entries_.end());
      index_.erase(&oldest->key);
      removed.splice(removed.end(), entries_, oldest);
      ++stats_.evictions;
    }
  }

  /// Takes the lock.
  [[nodiscard]] Removed take_all() {
    Removed removed;
    const std::lock_guard lock(mutex_);
    disown_makes([](const Make&) { return true; });
    index_.clear();
    removed.swap(entries_);
    return removed;
  }

  /// Takes the lock.
  [[nodiscard]] Removed resize(std::size_t capacity) {
    Removed removed;
    const std::lock_guard lock(mutex_);
    capacity_ = capacity;
    evict(removed);
    return removed;
  }

  void swap_contents(LRUCache& other) noexcept {
    entries_.swap(other.entries_);
    index_.swap(other.index_);
    std::swap(stats_, other.stats_);
  }

  mutable Mutex mutex_;
  std::shared_ptr<Owner> owner_;
  std::size_t capacity_ = 0;
  Entries entries_;  // used last first
  std::unordered_map<const Key*, typename Entries::iterator, HashKey, EqualKeys> index_;
  std::vector<std::shared_ptr<Make>> makes_;  // as few as there are threads making, hence no index
  CacheStats stats_;
};

}  // namespace xpuruntime
