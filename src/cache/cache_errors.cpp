#include "xpuruntime/cache/cache_errors.h"

#include <atomic>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

struct Reporter {
  Mutex mutex;
  std::shared_ptr<const CacheErrorHandler> handler;
  std::atomic<std::uint64_t> count = 0;
};

// Never destroyed: caches that are static objects still report while the process ends.
Reporter& reporter() {
  static Reporter& instance = *new Reporter;
  return instance;
}

std::shared_ptr<const CacheErrorHandler> current_handler() {
  const std::lock_guard lock(reporter().mutex);
  return reporter().handler;
}

}  // namespace

void set_cache_error_handler(CacheErrorHandler handler) {
  // The old handler is destroyed after the lock is released: its destructor is the user's code.
  auto next = handler ? std::make_shared<const CacheErrorHandler>(std::move(handler)) : nullptr;
  const std::lock_guard lock(reporter().mutex);
  reporter().handler.swap(next);
}

std::uint64_t cache_error_count() { return reporter().count.load(std::memory_order_relaxed); }

namespace detail {

void report_cache_error(std::string_view what, const std::exception_ptr& error) noexcept {
  reporter().count.fetch_add(1, std::memory_order_relaxed);
  try {
    if (const auto handler = current_handler()) {
      (*handler)("[cache] " + std::string(what) + ": " + exception_text(error) +
                 "; what the value held may be lost, so fix its destructor or its device");
    }
  } catch (...) {
    // The count stands; there is nobody else to tell.
  }
}

}  // namespace detail
}  // namespace xpuruntime
