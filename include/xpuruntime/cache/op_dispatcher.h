#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <initializer_list>
#include <type_traits>

#include "xpuruntime/core/device.h"

namespace xpuruntime {
namespace detail {

// Out of line, so that a lookup is an index and a test.
[[noreturn]] void fail_lookup(DeviceType type);
[[noreturn]] void fail_registration(DeviceType type);

}  // namespace detail

/// Which function serves each kind of device: `OpDispatcher<void (*)(float*, int)>`. All slots start empty. Registering
/// is safe at any time, also while others look up: they see the old function or the new one. A value: a copy has the
/// functions of each slot as it was when that slot was read, and from then on its own.
template <typename Fn>
class OpDispatcher {
  static_assert(std::is_pointer_v<Fn>, "OpDispatcher holds function pointers, as in OpDispatcher<void (*)(int)>");

 public:
  OpDispatcher() = default;
  OpDispatcher(const OpDispatcher& other) noexcept { *this = other; }
  OpDispatcher& operator=(const OpDispatcher& other) noexcept {
    for (std::size_t i = 0; i < table_.size(); ++i) {
      table_[i].store(other.table_[i].load(std::memory_order_acquire), std::memory_order_release);
    }
    return *this;
  }

  /// With `override_existing` false, a function that is already there stays.
  void register_device(DeviceType type, Fn fn, bool override_existing = true) {
    check(type, fn);
    set(table_[static_cast<std::size_t>(type)], fn, override_existing);
  }

  /// One function for several kinds of device. On an error, none is registered.
  void register_device(std::initializer_list<DeviceType> types, Fn fn, bool override_existing = true) {
    for (const DeviceType type : types) check(type, fn);
    for (const DeviceType type : types) register_device(type, fn, override_existing);
  }

  /// One function for all kinds of device; `register_all(fallback, false)` fills the slots still empty.
  void register_all(Fn fn, bool override_existing = true) {
    check(DeviceType::cpu, fn);
    for (auto& slot : table_) set(slot, fn, override_existing);
  }

  /// The function for `type`; a kind of device without one is an error.
  Fn lookup(DeviceType type) const {
    if (const Fn fn = find(type)) [[likely]] {
      return fn;
    }
    detail::fail_lookup(type);
  }

  /// As lookup, but null where there is none.
  Fn find(DeviceType type) const noexcept {
    const auto slot = static_cast<std::size_t>(type);
    return slot < table_.size() ? table_[slot].load(std::memory_order_acquire) : nullptr;
  }

 private:
  static void check(DeviceType type, Fn fn) {
    const bool known = static_cast<std::size_t>(type) < max_device_types && is_device_type(type);
    if (!known || fn == nullptr) detail::fail_registration(type);
  }

  static void set(std::atomic<Fn>& slot, Fn fn, bool override_existing) noexcept {
    // Release, so that what was set up before registering is seen by all callers of the function.
    if (override_existing) {
      slot.store(fn, std::memory_order_release);
    } else {
      Fn empty = nullptr;
      slot.compare_exchange_strong(empty, fn, std::memory_order_release, std::memory_order_relaxed);
    }
  }

  std::array<std::atomic<Fn>, max_device_types> table_{};
};

}  // namespace xpuruntime
