#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "xpuruntime/cache/cache_errors.h"
#include "xpuruntime/core/device.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/device/current.h"

namespace xpuruntime {

/// Whether equal values of this type name one resource, as raw pointers do. A cache runs the destructor callback for
/// such a resource once, when the last value that names it goes, however often it was put and under whichever keys.
/// Specialise it for handles that are not pointers; they need `==` and std::hash.
template <typename Value>
inline constexpr bool is_handle = std::is_pointer_v<Value>;

namespace detail {

/// How many living values name each handle.
template <typename Value>
class HandleCounts {
 public:
  void add(const Value& handle) {
    const std::lock_guard lock(mutex_);
    ++counts_[handle];
  }

  /// True for the last one: the resource is the caller's to free.
  bool drop(const Value& handle) {
    const std::lock_guard lock(mutex_);
    const auto found = counts_.find(handle);
    if (--found->second > 0) return false;
    counts_.erase(found);
    return true;
  }

 private:
  Mutex mutex_;
  std::unordered_map<Value, std::size_t> counts_;
};

/// For values that are their own resource: each is destroyed on its own.
struct NoCounts {};

/// How the values of one cache die: on which device and through which callback. Shared by the cache and its values,
/// because a value in use may outlive the cache.
template <typename Value>
class ValueOwner {
 public:
  using Destructor = std::function<void(Value&)>;

  ValueOwner(Destructor destructor, std::optional<Device> device)
      : destructor_(std::move(destructor)), device_(device) {}

  static std::shared_ptr<Value> adopt(const std::shared_ptr<ValueOwner>& owner, std::unique_ptr<Value> value) {
    if constexpr (is_handle<Value>) {
      // The deleter keeps its own copy of the handle: a user may overwrite the value.
      const Value handle = *value;
      owner->counts_.add(handle);
      return {value.release(),
              [owner, handle](Value* last) noexcept { owner->release_evicted(last, owner->counts_.drop(handle)); }};
    } else {
      return {value.release(), [owner](Value* last) noexcept { owner->release_evicted(last, true); }};
    }
  }

 private:
  // Each step is independent: a callback that throws must not keep the value's own destructor from running. Without the
  // owner's device the callback is left out, as freeing on another device may corrupt that one.
  void release_evicted(Value* value, bool frees_resource) const noexcept {
    const bool calls_back = frees_resource && destructor_ != nullptr;
    std::optional<DeviceGuard> guard;
    bool on_device = true;
    if (device_ && (calls_back || !std::is_trivially_destructible_v<Value>)) {
      on_device = contain("making the device of a cached value current", [&] { guard.emplace(*device_); });
    }
    if (on_device && calls_back) {
      contain("the destructor callback of a cached value", [&] { destructor_(*value); });
    }
    contain("the destructor of a cached value", [&] { delete value; });
  }

  Destructor destructor_;
  std::optional<Device> device_;
  std::conditional_t<is_handle<Value>, HandleCounts<Value>, NoCounts> counts_;
};

}  // namespace detail
}  // namespace xpuruntime
