#pragma once

#include <memory>
#include <utility>

#include "xpuruntime/core/mutex.h"

namespace xpuruntime {

/// A function that may be set and taken away while others call it: who calls it holds it, and no lock, until it
/// returns.
template <class Function>
class Hook {
 public:
  /// An empty function takes it away.
  void set(Function function) {
    auto next = function ? std::make_shared<const Function>(std::move(function)) : nullptr;
    const std::lock_guard lock(mutex_);
    held_.swap(next);  // the old one ends after the lock
  }
  std::shared_ptr<const Function> get() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const Function> held_;
};

}  // namespace xpuruntime
