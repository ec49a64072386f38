#pragma once

#include "xpuruntime/core/problem.h"

namespace xpuruntime {

/// A part or another order of a tensor's elements: the spec is not checked and serves to address them, no more.
struct View {
  TensorSpec spec = {};
  std::int64_t offset = 0;  // of its first element, in elements
};

/// The elements of input 0 that copy, transpose or slice stores, in the output's shape.
View source_view(const Problem& problem);

/// Where in the output concat stores input `input`.
View concat_target(const Problem& problem, std::size_t input);

template <class Byte>
Byte* element_at(Byte* base, const View& view) {
  return base + view.offset * static_cast<std::int64_t>(size_of(view.spec.dtype));
}

}  // namespace xpuruntime
