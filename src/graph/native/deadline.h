#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

#include "tune/tick_clock.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::native {

/// Fails once the time that a field of the execution policy allows is over. For one thread.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  Deadline(std::int64_t milliseconds, const char* field)
      : end_(Clock::now() + std::chrono::milliseconds(std::min(milliseconds, most_milliseconds))),
        milliseconds_(milliseconds),
        field_(field) {}

  /// Cheap enough for each of the smallest calls.
  void check() const {
    const std::uint64_t now = read_ticks();
    if (now - looked_ < ticks_between_looks) return;
    looked_ = now;
    if (Clock::now() >= end_) refuse();
  }
  Clock::time_point end() const { return end_; }
  [[noreturn]] void refuse() const {
    fail(ErrorCode::timeout, "Session",
         std::string(field_) + " of " + std::to_string(milliseconds_) + " ms is over; set it higher");
  }

 private:
  static constexpr std::uint64_t ticks_between_looks = 20'000;  // under a millisecond wherever there are ticks
  static constexpr std::int64_t most_milliseconds = std::int64_t{1000} * 60 * 60 * 24 * 365;  // never

  Clock::time_point end_;
  mutable std::uint64_t looked_ = 0;
  std::int64_t milliseconds_;
  const char* field_;
};

}  // namespace xpuruntime::native
