#include "backends/cpu/reduce/layout.h"

#include <algorithm>

#include "backends/cpu/reduce/parts.h"

namespace xpuruntime::cpu {
namespace {

struct Dim {
  Axis axis = {};
  bool reduced = false;
};

std::vector<Dim> sorted_dims(const Problem& problem) {
  const TensorSpec& in = problem.inputs[0];
  const TensorSpec out = kept_output(problem);
  const unsigned reduced = reduced_dims(problem);
  std::vector<Dim> dims;
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    const bool repeated = gone && in.strides[i] == 0;
    if (in.shape[i] != 1 && !repeated) dims.push_back({{in.shape[i], in.strides[i], gone ? 0 : out.strides[i]}, gone});
  }
  // A permuted tensor is read as it lies in memory: the order of a reduction's terms is ours to choose. What is read
  // again and again comes first.
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) {
    return b.axis.in != 0 && (a.axis.in == 0 || a.axis.in > b.axis.in);
  });
  return dims;
}

std::int64_t repeats_of(const Problem& problem) {
  const TensorSpec& in = problem.inputs[0];
  const unsigned reduced = reduced_dims(problem);
  std::int64_t repeats = 1;
  for (std::size_t i = 0; i < in.shape.size(); ++i) {
    if ((reduced >> i & 1) != 0 && in.strides[i] == 0) repeats *= in.shape[i];
  }
  return repeats;
}

bool one_after_another(const Dim& outer, const Dim& inner) {
  return outer.reduced == inner.reduced && outer.axis.in == inner.axis.in * inner.axis.count &&
         outer.axis.out == inner.axis.out * inner.axis.count;
}

std::int64_t product(std::span<const Axis> axes) {
  std::int64_t count = 1;
  for (const Axis& axis : axes) count *= axis.count;
  return count;
}

}  // namespace

std::int64_t ReduceLayout::kept_count() const { return product(kept); }
std::int64_t ReduceLayout::reduced_count() const { return product(reduced); }

ReduceLayout reduce_layout(const Problem& problem) {
  std::vector<Dim> dims;
  for (const Dim& dim : sorted_dims(problem)) {
    if (!dims.empty() && one_after_another(dims.back(), dim)) {
      dims.back().axis = {dims.back().axis.count * dim.axis.count, dim.axis.in, dim.axis.out};
    } else {
      dims.push_back(dim);
    }
  }
  ReduceLayout layout;
  layout.repeats = repeats_of(problem);
  if (dims.empty()) {
    layout.inner = {1, 1, 0};  // a single element: a row of one
    return layout;
  }
  layout.inner = dims.back().axis;
  layout.inner_reduced = dims.back().reduced;
  dims.pop_back();
  for (const Dim& dim : dims) (dim.reduced ? layout.reduced : layout.kept).push_back(dim.axis);
  return layout;
}

}  // namespace xpuruntime::cpu
