#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace xpuruntime {

/// Called with what went wrong while cached values were destroyed, where nothing can catch an exception. It may
/// be called on any thread, on several at once; what it throws is dropped.
using CacheErrorHandler = std::function<void(std::string_view message)>;

/// Sets the process's handler. An empty one is the default: errors are then only counted.
void set_cache_error_handler(CacheErrorHandler handler);

/// How many such errors there have been in this process.
std::uint64_t cache_error_count();

namespace detail {

/// Counts and reports the exception being handled; call it in a catch block. `what` says what was tried. The caller
/// looks the exception up, as for exception_text.
void report_cache_error(std::string_view what, const std::exception_ptr& error = std::current_exception()) noexcept;

/// Runs `step` and reports whatever it throws, of any type. Says whether it went through.
template <typename Step>
bool contain(std::string_view what, Step&& step) noexcept {
  try {
    step();
    return true;
  } catch (...) {
    report_cache_error(what);
    return false;
  }
}

}  // namespace detail
}  // namespace xpuruntime
