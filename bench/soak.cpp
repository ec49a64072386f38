// Whether memory stays where it was: 100,000 problems, again and again, with logging, scopes, tuning, threads that come
// and go and threads that only wait. Fails where the process holds 64 MB more than after its first minute (with
// --passes: than after the first pass over all problems).
//
//   soak --minutes 10
//   soak --passes 2 --problems 20000

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <latch>
#include <memory>
#include <thread>
#include <vector>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr double allowed_mb = 64;
constexpr int max_side = 48;  // three sides of a product: 110,592 problems

struct Options {
  double minutes = 0;
  int passes = 2;
  int problems = 100'000;
  int threads = 3;
  int idle_threads = 4;
};

/// What the process has in memory.
double resident_mb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// A small matrix product; every number gives another problem. It stays in memory that lasts for all of them.
class Product {
 public:
  Product() {
    for (Tensor& tensor : memory_) {
      tensor = Tensor::empty(DataType::float32, {max_side, max_side});
      std::fill_n(tensor.as<float>(), max_side * max_side, 1.0f);
    }
  }

  void run(Dispatcher& dispatcher, int number) {
    const std::int64_t m = 1 + number % max_side, k = 1 + number / max_side % max_side,
                       n = 1 + number / (max_side * max_side) % max_side;
    const Tensor a(memory_[0].data(), make_spec(DataType::float32, {m, k}));
    const Tensor b(memory_[1].data(), make_spec(DataType::float32, {k, n}));
    const Tensor c(memory_[2].data(), make_spec(DataType::float32, {m, n}));
    const std::array<const Tensor*, 2> inputs = {&a, &b};
    const std::array<const Tensor*, 1> outputs = {&c};
    dispatcher.dispatch({OpId::matmul, inputs, outputs});
  }

 private:
  std::array<Tensor, 3> memory_;
};

class Soak {
 public:
  explicit Soak(const Options& options) : options_(options) {
    runtime_.dispatcher().enable_logging(1024);
    TuneOptions tuning;
    tuning.problem_budget_s = 0.002;
    runtime_.enable_tuning(tuning);
  }

  bool run() {
    const Idle idle(*this);
    const auto start = Clock::now();
    const auto minutes = [&] { return std::chrono::duration<double>(Clock::now() - start).count() / 60; };
    double first = 0, most = 0;
    std::printf("%8s %6s %10s %12s %12s\n", "minutes", "passes", "MB", "calls", "dropped");
    for (int pass = 1; options_.minutes > 0 ? minutes() < options_.minutes : pass <= options_.passes; ++pass) {
      run_pass();
      const double now = resident_mb();
      if (first == 0 && (options_.minutes <= 0 || minutes() >= 1)) first = now;
      most = first == 0 ? 0 : std::max(most, now);
      std::printf("%8.2f %6d %10.1f %12llu %12llu\n", minutes(), pass, now,
                  static_cast<unsigned long long>(calls_.load()),
                  static_cast<unsigned long long>(runtime_.dispatcher().dropped_logs()));
      std::fflush(stdout);
    }
    std::printf("%.1f MB at first, %.1f at most: %.1f more, %.0f allowed\n", first, most, most - first, allowed_mb);
    return first > 0 && most - first <= allowed_mb;
  }

 private:
  /// Threads that ran a part of the problems once and wait from then on.
  struct Idle {
    explicit Idle(Soak& soak) {
      for (int t = 0; t < soak.options_.idle_threads; ++t) {
        threads.emplace_back([this, &soak, t] {
          Product product;
          for (int i = 0; i < 3000; ++i) product.run(soak.runtime_.dispatcher(), 3000 * t + i);
          done.wait();
        });
      }
    }
    ~Idle() {
      done.count_down();
      for (std::thread& thread : threads) thread.join();
    }
    std::latch done{1};
    std::vector<std::thread> threads;
  };

  void run_pass() {
    std::vector<std::thread> threads;
    for (int t = 0; t < options_.threads; ++t) {
      threads.emplace_back([this, t] {
        Product product;
        for (int number = t; number < options_.problems; number += options_.threads) run_problem(product, number);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  void run_problem(Product& product, int number) {
    Dispatcher& dispatcher = runtime_.dispatcher();
    KernelPolicy policy;
    if (number % 64 == 1) policy.auto_strategy = Strategy::best_performance;  // tunes
    if (number % 8 == 2) policy.auto_strategy = Strategy::lowest_memory;      // reads the statistics
    if (number % 16 == 2) policy.workspace_limit_bytes = static_cast<std::uint64_t>(1 << 20) + number % 2000;
    if (policy == KernelPolicy()) {
      product.run(dispatcher, number);
    } else {
      const ScopedPolicy scope(dispatcher, policy);
      product.run(dispatcher, number);
    }
    product.run(dispatcher, number - number % 100);  // one that comes again and again
    calls_ += 2;
    if (number % 10'000 == 3) entries_read_ += dispatcher.logs().size();
  }

  const Options options_;
  Runtime runtime_{{false, false, {}}};
  std::atomic<std::uint64_t> calls_{0};
  std::atomic<std::uint64_t> entries_read_{0};
};

}  // namespace
}  // namespace xpuruntime::bench

int main(int argc, char** argv) {
  xpuruntime::bench::Options options;
  CLI::App app("Runs many problems for long and fails where memory grows");
  app.add_option("--minutes", options.minutes, "how long; 0: as many passes as --passes says");
  app.add_option("--passes", options.passes, "passes over all problems")->check(CLI::PositiveNumber);
  app.add_option("--problems", options.problems, "how many")->check(CLI::Range(1, 110'592));
  app.add_option("--threads", options.threads, "that call")->check(CLI::Range(1, 256));
  app.add_option("--idle-threads", options.idle_threads, "that called once and wait")->check(CLI::Range(0, 256));
  CLI11_PARSE(app, argc, argv);
  try {
    return xpuruntime::bench::Soak(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "soak: %s\n", error.what());
    return 2;
  }
}
