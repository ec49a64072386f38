#pragma once

#include <functional>
#include <optional>

#include "xpuruntime/core/error.h"

namespace xpuruntime {

/// Microseconds since some moment, by the system's steady clock.
double steady_us();

/// Threads of a library may go on spinning for milliseconds after their work, on the cores that the next kernel needs:
/// waits until they sleep, or for a while.
void let_threads_sleep();

/// Adds up the time since it was made, by a clock that may be wrong: a step
/// that cannot be right counts as nothing.
class Stopwatch {
 public:
  using Clock = std::function<double()>;
  explicit Stopwatch(const Clock& clock) : clock_(clock), last_(clock()) {}

  /// Microseconds in all.
  double elapsed_us();

 private:
  const Clock& clock_;
  double last_;
  double sum_ = 0;
};

/// Times batches on the host, from before the first launch until the device is
/// done: what the host does counts.
class BatchTimer {
 public:
  using Clock = std::function<double()>;
  explicit BatchTimer(const Clock& clock) : clock_(clock) {}

  /// The microseconds that `batch` took; nothing where the clock went backwards
  /// or its reading is absurd. What the batch throws, or returns as a failed
  /// status, comes out in `status`.
  std::optional<double> time(const std::function<Status()>& batch, Status& status);
  int discarded() const { return discarded_; }
  /// Whether a batch took no time by the clock, but much of the processor's.
  bool stands_still() const { return stands_still_; }

 private:
  const Clock& clock_;
  int discarded_ = 0;
  bool stands_still_ = false;
};

}  // namespace xpuruntime
