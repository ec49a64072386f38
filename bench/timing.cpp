#include "timing.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>

namespace xpuruntime::bench {
namespace {

using Clock = std::chrono::steady_clock;

// The thread's own time: what another process takes away in between is not ours to count.
double thread_nanoseconds() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

double nanoseconds(Clock::duration duration) { return std::chrono::duration<double, std::nano>(duration).count(); }

std::uint64_t calls_for(const std::function<void(std::uint64_t)>& block, double target_ns) {
  std::uint64_t calls = 1;
  for (;;) {
    const double start = thread_nanoseconds();
    block(calls);
    const double elapsed = thread_nanoseconds() - start;
    if (elapsed >= target_ns / 2) {
      return std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(calls) * target_ns / elapsed));
    }
    calls *= 2;
  }
}

}  // namespace

std::vector<double> ns_per_call_in_turn(const std::vector<std::function<void(std::uint64_t)>>& blocks, int rounds) {
  std::vector<std::uint64_t> calls;
  for (const auto& block : blocks) calls.push_back(calls_for(block, 2e6));
  std::vector<std::vector<double>> times(blocks.size());
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const double start = thread_nanoseconds();
      blocks[i](calls[i]);
      times[i].push_back((thread_nanoseconds() - start) / static_cast<double>(calls[i]));
    }
  }
  std::vector<double> medians;
  for (auto& row : times) {
    std::nth_element(row.begin(), row.begin() + rounds / 2, row.end());
    medians.push_back(row[static_cast<std::size_t>(rounds / 2)]);
  }
  return medians;
}

double ns_per_call(const std::function<void(std::uint64_t)>& block, int rounds) {
  return ns_per_call_in_turn({block}, rounds).front();
}

namespace {

double wall_ns_per_call(int threads, const std::function<std::function<void(std::uint64_t)>()>& make_block) {
  constexpr std::uint64_t calls = 1'000'000;
  std::atomic<int> ready{0};
  std::atomic<bool> go{false};
  std::vector<std::thread> workers;
  for (int i = 0; i < threads; ++i) {
    workers.emplace_back([&] {
      const auto block = make_block();
      block(1000);
      ++ready;
      while (!go.load(std::memory_order_acquire)) {
      }
      block(calls);
    });
  }
  while (ready.load() != threads) std::this_thread::yield();
  const auto start = Clock::now();
  go.store(true, std::memory_order_release);
  for (auto& worker : workers) worker.join();
  return nanoseconds(Clock::now() - start) / static_cast<double>(calls);
}

}  // namespace

Scaling two_threads(const std::function<std::function<void(std::uint64_t)>()>& make_block) {
  Scaling best{1e300, 1e300};
  for (int round = 0; round < 21; ++round) {
    best.ns_alone = std::min(best.ns_alone, wall_ns_per_call(1, make_block));
    best.ns_both = std::min(best.ns_both, wall_ns_per_call(2, make_block));
  }
  return best;
}

void Table::print() const {
  std::vector<std::size_t> widths(rows_.front().size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const int width = static_cast<int>(widths[i]);
      std::printf(i == 0 ? "%-*s" : "  %*s", width, row[i].c_str());
    }
    std::printf("\n");
  }
}

std::string number(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

}  // namespace xpuruntime::bench
