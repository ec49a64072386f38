#include "tune/order_statistics.h"

#include <algorithm>
#include <cmath>

namespace xpuruntime {
namespace {

/// How many values may be left out at each end: the largest k for which fewer
/// than k of n fair coins show heads at most alpha / 2 of the time.
std::size_t values_left_out(std::size_t n, double alpha) {
  double probability = std::exp2(-static_cast<double>(n));  // of exactly k heads
  double at_most = 0;
  std::size_t k = 0;
  while (k < n && at_most + probability <= alpha / 2) {
    at_most += probability;
    probability *= static_cast<double>(n - k) / static_cast<double>(k + 1);
    ++k;
  }
  return k;
}

}  // namespace

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::optional<MedianBounds> median_bounds(std::vector<double> values, double alpha) {
  const std::size_t k = values_left_out(values.size(), alpha);
  if (k == 0) return std::nullopt;
  std::sort(values.begin(), values.end());
  return MedianBounds{values[k - 1], values[values.size() - k]};
}

}  // namespace xpuruntime
