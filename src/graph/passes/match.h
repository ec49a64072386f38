#pragma once

#include <algorithm>
#include <vector>

#include "graph/passes/rewriter.h"

// What the passes look for in common.

namespace xpuruntime::native {

/// The steps of a pattern so far, in any order.
using Steps = std::vector<std::size_t>;

/// Calls `found(one, other)` for both orders of a call's two inputs, until it says yes.
template <class Found>
bool either_order(const Step& step, const Found& found) {
  return step.inputs.size() == 2 && (found(step.inputs[0], step.inputs[1]) || found(step.inputs[1], step.inputs[0]));
}

/// The factors of a product: it goes into factors that are products themselves and read by nothing else.
inline void collect_factors(const Rewriter& program, std::size_t step, Steps& steps, std::vector<int>& factors) {
  steps.push_back(step);
  for (const int input : program.step(step).inputs) {
    const std::size_t maker = program.maker(input);
    if (program.is(maker, OpId::mul) && program.reads(input) == 1) {
      collect_factors(program, maker, steps, factors);
    } else {
      factors.push_back(input);
    }
  }
}

/// Takes one element out of a list; false: it is not in there.
template <class Is>
bool take(std::vector<int>& from, const Is& is) {
  const auto found = std::find_if(from.begin(), from.end(), is);
  if (found == from.end()) return false;
  from.erase(found);
  return true;
}

/// The same slot, or another name of the same constant memory.
inline bool take(std::vector<int>& from, int slot) {
  return take(from, [=](int other) { return other == slot; });
}

/// The last dims that a reduction is over, which stay with one element; 0: it is another.
inline std::size_t reduced_last_dims(const Rewriter& program, std::size_t step) {
  const Step& at = program.step(step);
  const auto rank = static_cast<std::int64_t>(program.shape(at.inputs[0]).size());
  if (!at.attributes.boolean("keepdim")) return 0;
  std::vector<std::int64_t> dims = at.attributes.list("dim");
  for (std::int64_t& dim : dims) dim = dim < 0 ? dim + rank : dim;
  std::sort(dims.begin(), dims.end());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != rank - static_cast<std::int64_t>(dims.size() - i)) return 0;
  }
  return dims.size();
}

/// A slot of this shape with the same elements in order: dims of one element before the others do not count, as in
/// broadcasts. -1: it is none.
inline int with_shape(Rewriter& program, int slot, const Dims& shape) {
  const TensorSpec from = program.spec(slot);
  if (from.shape == shape) return slot;
  const auto kept = [](const Dims& dims) {
    const auto first = std::find_if(dims.begin(), dims.end(), [](std::int64_t extent) { return extent != 1; });
    return std::vector<std::int64_t>(first, dims.end());
  };
  if (!from.contiguous || kept(from.shape) != kept(shape)) return -1;
  return program.add_view(slot, make_spec(from.dtype, shape, contiguous_strides(shape), from.alignment));
}

}  // namespace xpuruntime::native
