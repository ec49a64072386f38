#pragma once

#include <optional>
#include <vector>

namespace xpuruntime {

/// Of values in any order; there must be some.
double median_of(std::vector<double> values);

/// Bounds for the median that `values` were drawn around, wrong at most `alpha`
/// of the time, whatever the noise looks like: two order statistics. Nothing
/// where there are too few values for that.
struct MedianBounds {
  double low = 0;
  double high = 0;
};
std::optional<MedianBounds> median_bounds(std::vector<double> values, double alpha);

}  // namespace xpuruntime
