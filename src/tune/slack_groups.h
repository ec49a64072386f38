#pragma once

#include <cstdint>
#include <functional>

#include "tune/slack.h"

namespace xpuruntime {

/// How a norm goes over its input.
struct Norm {
  bool centred = true;  // whether the mean is taken off first
  double eps = 0;
  double unit = 0;
  std::int64_t count = 1;   // of the elements that are normalized together
  std::int64_t groups = 1;  // of such
};

/// Of a norm of rows, either direction.
Norm norm_of(const Solved& solved);

/// Elements that are normalized together: their moments, and how far rounding takes those.
struct Group {
  double mean = 0, of_mean = 0;  // sizes
  double variance = 0;
  double scale = 1;        // 1 / sqrt(variance + eps)
  double scale_units = 0;  // relative

  /// The elements are x[place(0)], x[place(1)] ...
  static Group of(const double* x, std::int64_t count, const std::function<std::int64_t(std::int64_t)>& place,
                  const Norm& norm);
  /// Of one element's result.
  double slack(double x, double weight, double bias) const;
};

}  // namespace xpuruntime
