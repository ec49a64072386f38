#include "tune/timer.h"

#include <chrono>
#include <cmath>

namespace xpuruntime {
namespace {

// No batch takes an hour: the machine slept, or the clock jumped.
constexpr double longest_us = 3.6e9;

bool is_sane(double us) { return std::isfinite(us) && us >= 0 && us <= longest_us; }

}  // namespace

double steady_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double Stopwatch::elapsed_us() {
  const double now = clock_();
  if (is_sane(now - last_)) sum_ += now - last_;
  if (std::isfinite(now)) last_ = now;
  return sum_;
}

std::optional<double> BatchTimer::time(const std::function<Status()>& batch, Status& status) {
  const double start = clock_();
  status = batch();
  const double took = clock_() - start;
  if (is_sane(took)) return took;
  ++discarded_;
  return std::nullopt;
}

}  // namespace xpuruntime
