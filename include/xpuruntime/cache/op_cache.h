#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "xpuruntime/cache/lru_cache.h"
#include "xpuruntime/core/device.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// One LRUCache for each device: what an op has prepared there (plans, compiled programs, library handles).
///
/// A device's cache is made when first asked for and keeps its address for as long as this object, or the one it was
/// moved to, lives. Values die on their device, whichever way they leave; the caller's current device is as before.
/// A raw handle belongs to one device: equal ones on two devices are two resources.
/// Safe to use from many threads. A moved-from OpCache is empty, with the same capacity and callback; moving and
/// destroying are for when no other thread uses it.
template <typename Key, typename Value, typename Hash = KeyHash<Key>, typename Equal = std::equal_to<Key>>
class OpCache {
 public:
  using BaseCache = LRUCache<Key, Value, Hash, Equal>;
  using Destructor = typename BaseCache::Destructor;

  /// `capacity` is that of each device's cache. All devices share the one `destructor`; see LRUCache.
  explicit OpCache(std::size_t capacity = 100, Destructor destructor = nullptr)
      : capacity_(capacity),
        destructor_(destructor ? std::make_shared<const Destructor>(std::move(destructor)) : nullptr) {}
  ~OpCache() { clear(); }

  OpCache(OpCache&& other) noexcept {
    const std::lock_guard lock(other.mutex_);
    capacity_ = other.capacity_;
    destructor_ = other.destructor_;
    caches_.swap(other.caches_);
  }
  OpCache& operator=(OpCache&& other) noexcept {
    OpCache taken(std::move(other));  // leaves with what this one held, after the lock
    const std::lock_guard lock(mutex_);
    std::swap(capacity_, taken.capacity_);
    destructor_.swap(taken.destructor_);
    caches_.swap(taken.caches_);
    return *this;
  }

  BaseCache& get_cache(DeviceType type, std::size_t index) {
    check(type, index);
    return get_cache(Device{type, static_cast<std::uint8_t>(index)});
  }

  BaseCache& get_cache(Device device) {
    check(device.type, device.index);
    const std::lock_guard lock(mutex_);
    const auto found = caches_.find(device);
    if (found != caches_.end()) return found->second;
    return caches_.try_emplace(device, capacity_, forward_to_destructor(), device).first->second;
  }

  /// For the caches there are and those to come.
  void set_capacity(std::size_t capacity) {
    Removed removed;
    const std::lock_guard lock(mutex_);
    capacity_ = capacity;
    for (auto& [device, cache] : caches_) removed.splice(removed.end(), cache.resize(capacity));
  }

  /// Empties every device's cache; references to them stay good.
  void clear() {
    Removed removed;
    const std::lock_guard lock(mutex_);
    for (auto& [device, cache] : caches_) removed.splice(removed.end(), cache.take_all());
  }

 private:
  // Declared before the lock is taken: values die after it is released, so their callbacks may come back here.
  using Removed = typename BaseCache::Removed;

  static void check(DeviceType type, std::size_t index) {
    if (!is_device_type(type)) {
      fail(ErrorCode::invalid_argument, "OpCache::get_cache",
           std::to_string(static_cast<unsigned>(type)) +
               " is not a device type; pass one of the enum's or a registered one");
    }
    if (index > std::numeric_limits<std::uint8_t>::max()) {
      fail(ErrorCode::invalid_argument, "OpCache::get_cache",
           "device index " + std::to_string(index) + " is too large; pass one from 0 to 255");
    }
  }

  Destructor forward_to_destructor() const {
    if (!destructor_) return nullptr;
    return [shared = destructor_](Value& value) { (*shared)(value); };
  }

  Mutex mutex_;
  std::size_t capacity_ = 0;
  std::shared_ptr<const Destructor> destructor_;
  std::map<Device, BaseCache> caches_;  // a map, as its nodes never move
};

}  // namespace xpuruntime
