#include "graph/session/compare_results.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/elements.h"

namespace xpuruntime {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// Where an element lies, counted in elements.
std::int64_t place_of(const TensorSpec& spec, std::int64_t index) {
  if (spec.contiguous) return index;
  std::int64_t place = 0;
  for (std::size_t axis = spec.shape.size(); axis-- > 0;) {
    place += index % spec.shape[axis] * spec.strides[axis];
    index /= spec.shape[axis];
  }
  return place;
}

template <class Load>
auto element(Load load, const Tensor& tensor, std::int64_t index) {
  return load(tensor.as<const void>(), place_of(tensor.spec(), index));
}

double difference_of_floats(const Tensor& expected, const Tensor& found) {
  const LoadElement load = loader_of(expected.dtype());
  double most = 0, largest = 0;
  for (std::int64_t i = 0; i < element_count(expected.spec()); ++i) {
    const double want = element(load, expected, i), got = element(load, found, i);
    if (std::isfinite(want)) largest = std::max(largest, std::fabs(want));
    if (want == got || (std::isnan(want) && std::isnan(got))) continue;
    const double difference = std::fabs(want - got);
    if (!std::isfinite(difference)) return infinite;
    most = std::max(most, difference);
  }
  return most == 0 ? 0 : most / std::max(largest, std::numeric_limits<double>::min());
}

double share_that_differs(const Tensor& expected, const Tensor& found) {
  const LoadInteger load = integer_loader_of(expected.dtype());
  const std::int64_t count = element_count(expected.spec());
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    differ += element(load, expected, i) != element(load, found, i) ? 1 : 0;
  }
  return count == 0 ? 0 : static_cast<double>(differ) / static_cast<double>(count);
}

bool is_coarse(const Tensor& constant) {
  const DataType dtype = constant.dtype();
  return dtype != DataType::float32 && dtype != DataType::float64 && (is_floating(dtype) || size_of(dtype) == 1) &&
         dtype != DataType::boolean;
}

}  // namespace

double difference_of(std::span<const Tensor> expected, std::span<const Tensor> found) {
  if (expected.size() != found.size()) return infinite;
  double most = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].dtype() != found[i].dtype() || expected[i].shape() != found[i].shape()) return infinite;
    most = std::max(most, is_floating(expected[i].dtype()) ? difference_of_floats(expected[i], found[i])
                                                           : share_that_differs(expected[i], found[i]));
  }
  return most;
}

double most_difference(const Model& model, DataType precision) {
  const auto& constants = model.graph.constants;
  const bool coarse =
      precision != DataType::float32 ||
      std::any_of(constants.begin(), constants.end(), [](const auto& one) { return is_coarse(one.second); });
  return coarse ? 0.1 : 0.01;
}

}  // namespace xpuruntime
