#include "tune/timer.h"

#include <chrono>
#include <cmath>
#include <ctime>
#include <thread>

namespace xpuruntime {
namespace {

// No batch takes an hour: the machine slept, or the clock jumped.
constexpr double longest_us = 3.6e9;

// The processor's time in which any clock moves, be it a coarse one.
constexpr double still_us = 1e5;

double process_us() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
}

bool is_sane(double us) { return std::isfinite(us) && us >= 0 && us <= longest_us; }

}  // namespace

double steady_us() {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void let_threads_sleep() {
  constexpr int most_naps = 15;
  constexpr double nap_us = 300;
  for (int i = 0; i < most_naps; ++i) {
    const double before = process_us();
    std::this_thread::sleep_for(std::chrono::duration<double, std::micro>(nap_us));
    if (process_us() - before < nap_us / 3) return;
  }
}

double Stopwatch::elapsed_us() {
  const double now = clock_();
  if (is_sane(now - last_)) sum_ += now - last_;
  if (std::isfinite(now)) last_ = now;
  return sum_;
}

std::optional<double> BatchTimer::time(const std::function<Status()>& batch, Status& status) {
  const double before = process_us();
  const double start = clock_();
  status = batch();
  const double took = clock_() - start;
  if (took == 0 && process_us() - before > still_us) stands_still_ = true;
  if (is_sane(took)) return took;
  ++discarded_;
  return std::nullopt;
}

}  // namespace xpuruntime
