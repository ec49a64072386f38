#include "machine_peak.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "timing.h"

// This file is compiled once for every instruction set: Highway includes it again.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "machine_peak.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace xpuruntime::bench {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
using Floats = hn::ScalableTag<float>;

// Ten chains: enough to hide the latency of two units, few enough for sixteen registers.
double multiply_add(std::int64_t rounds) {
  const Floats d;
  const auto scale = hn::Set(d, 0.999f), shift = hn::Set(d, 0.001f);
  auto a = shift, b = shift, c = shift, e = shift, f = shift, g = shift, h = shift, i = shift, j = shift, k = shift;
  for (std::int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, scale, shift), b = hn::MulAdd(b, scale, shift), c = hn::MulAdd(c, scale, shift);
    e = hn::MulAdd(e, scale, shift), f = hn::MulAdd(f, scale, shift), g = hn::MulAdd(g, scale, shift);
    h = hn::MulAdd(h, scale, shift), i = hn::MulAdd(i, scale, shift), j = hn::MulAdd(j, scale, shift);
    k = hn::MulAdd(k, scale, shift);
  }
  const auto all =
      hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(hn::Add(hn::Add(f, g), hn::Add(h, i)), hn::Add(j, k)));
  keep(hn::GetLane(all));
  return 2.0 * 10 * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

void triad(float* a, const float* b, const float* c, std::int64_t count) {
  const Floats d;
  const auto scale = hn::Set(d, 3.0f);
  const auto step = static_cast<std::int64_t>(hn::Lanes(d));
  for (std::int64_t i = 0; i + step <= count; i += step) {
    hn::StoreU(hn::MulAdd(scale, hn::LoadU(d, c + i), hn::LoadU(d, b + i)), d, a + i);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace xpuruntime::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace xpuruntime::bench {
namespace {

HWY_EXPORT(multiply_add);
HWY_EXPORT(triad);

using Clock = std::chrono::steady_clock;

/// Work a second of `threads` threads that start together; `work` returns how much it did. The best of some short
/// rounds, since others can only slow it down.
double best_rate(int threads, const std::function<double(int)>& work) {
  constexpr int rounds = 25;
  double best = 0;
  for (int round = 0; round < rounds; ++round) {
    std::atomic<int> ready{0};
    std::vector<double> done(static_cast<std::size_t>(threads), 0);
    std::vector<std::thread> others;
    Clock::time_point start;
    const auto take_part = [&](int thread) {
      ++ready;
      while (ready.load() < threads) {
      }
      if (thread == 0) start = Clock::now();
      done[static_cast<std::size_t>(thread)] = work(thread);
    };
    for (int i = 1; i < threads; ++i) others.emplace_back(take_part, i);
    take_part(0);
    for (auto& other : others) other.join();
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    double all = 0;
    for (const double part : done) all += part;
    best = std::max(best, all / seconds);
  }
  return best;
}

/// For arrays of `count` floats a thread; small ones are gone over again until the clock can tell.
MachinePeak::Bandwidth bandwidth(int threads, std::int64_t count) {
  const auto size = static_cast<std::size_t>(3 * count);
  std::vector<std::vector<float>> memory(static_cast<std::size_t>(threads), std::vector<float>(size, 1.0f));
  const std::int64_t repeats = std::max<std::int64_t>(1, (2 << 20) / count);
  const double bytes = 3.0 * sizeof(float) * static_cast<double>(count);
  const double rate = best_rate(threads, [&](int thread) {
    float* a = memory[static_cast<std::size_t>(thread)].data();
    for (std::int64_t i = 0; i < repeats; ++i) HWY_DYNAMIC_DISPATCH(triad)(a, a + count, a + 2 * count, count);
    return bytes * static_cast<double>(repeats);
  });
  return {bytes * threads, rate};
}

}  // namespace

MachinePeak measure_peak(int threads) {
  MachinePeak peak;
  peak.flops = best_rate(threads, [](int) { return HWY_DYNAMIC_DISPATCH(multiply_add)(300'000); });
  for (const std::int64_t count : {2 << 10, 64 << 10, 512 << 10, 4 << 20}) {  // 24 KiB to 48 MiB a thread
    peak.bandwidths.push_back(bandwidth(threads, count));
  }
  return peak;
}

double MachinePeak::bytes_for(double data_bytes) const {
  for (const Bandwidth& each : bandwidths) {
    if (data_bytes <= each.data_bytes) return each.bytes;
  }
  return bandwidths.back().bytes;
}

}  // namespace xpuruntime::bench
#endif  // HWY_ONCE
