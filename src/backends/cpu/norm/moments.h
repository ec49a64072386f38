#pragma once

namespace xpuruntime::cpu {

/// Mean and sum of squared distances from it, of some values.
struct Moments {
  double count = 0;
  double mean = 0;
  double squares = 0;

  double variance() const { return squares / count; }

  /// Those of both together. Never a difference of large numbers, so no digits are lost.
  void add(const Moments& other) {
    if (other.count == 0) return;
    const double both = count + other.count, distance = other.mean - mean;
    squares += other.squares + distance * distance * (count * other.count / both);
    mean += distance * (other.count / both);
    count = both;
  }
};

}  // namespace xpuruntime::cpu
