#pragma once

#include <vector>

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// A dimension along which the results are independent of each other: what one range of it gives can be computed from
/// that range of some inputs and all of the others.
struct FreeDimension {
  /// Dimension `dim` of tensor `tensor` runs along it.
  struct Place {
    std::size_t tensor = 0;
    std::size_t dim = 0;
  };
  std::int64_t extent = 0;
  std::vector<Place> inputs = {};
  std::vector<Place> outputs = {};
};

/// Of forward matrix ops and softmax; nothing for others.
std::vector<FreeDimension> free_dimensions(const Problem& problem);

/// A range of each of some free dimensions.
struct Slice {
  struct Cut {
    FreeDimension dimension = {};
    std::int64_t begin = 0;
    std::int64_t count = 0;
  };
  std::vector<Cut> cuts = {};

  std::vector<Tensor> of_inputs(const std::vector<Tensor>& inputs) const;
  std::vector<Tensor> of_outputs(const std::vector<Tensor>& outputs) const;
};

/// Two slices, the first corner and the last, that are `share` of the work each or as near as they come; one that
/// is everything where nothing need or can be cut.
std::vector<Slice> slices_of(const Problem& problem, double share);

}  // namespace xpuruntime
