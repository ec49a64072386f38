#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>
#include <vector>

#include "xpuruntime/core/error.h"

namespace xpuruntime::bench {

/// Runs a benchmark. What it throws is printed under its name, and its exit code is 1.
template <class Run>
int guarded(const char* name, const Run& run) {
  try {
    return run();
  } catch (...) {
    std::fprintf(stderr, "%s: %s\n", name, exception_text().c_str());
    return 1;
  }
}

/// Keeps the compiler from dropping a value.
template <class T>
inline void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

/// Nanoseconds of the thread's own time per call: the median over `rounds` blocks, each long enough (about 2 ms) for
/// the clock not to matter. `block(n)` makes n calls.
double ns_per_call(const std::function<void(std::uint64_t)>& block, int rounds = 31);

/// The same for several blocks, round by round in turn, so that a slow spell of the machine hits all alike.
std::vector<double> ns_per_call_in_turn(const std::vector<std::function<void(std::uint64_t)>>& blocks, int rounds = 31);

/// How many times as many calls two threads make as one in the same wall time: the best of several rounds of each, in
/// turn, since another process can only slow them down. `make_block` is called on each thread.
struct Scaling {
  double ns_alone = 0;  // per call, one thread
  double ns_both = 0;   // per call of each of two threads
  double together() const { return 2 * ns_alone / ns_both; }
};
Scaling two_threads(const std::function<std::function<void(std::uint64_t)>()>& make_block);

/// A table printed with aligned columns.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : rows_{std::move(header)} {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print() const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string number(double value, int decimals = 1);

}  // namespace xpuruntime::bench
