#pragma once

#include "xpuruntime/dispatch/dispatcher.h"

namespace xpuruntime {

/// Whether the bytes from the first to the last element of both meet. Handles of buffers count as addresses here: a yes
/// may be wrong, a no is not.
inline bool ranges_meet(const Tensor& a, const Tensor& b) {
  const auto* begin_a = a.as<const std::byte>();
  const auto* begin_b = b.as<const std::byte>();
  return begin_a < begin_b + b.span() && begin_b < begin_a + a.span();
}

/// Whether an output may lie over an input or another output: quick, and no for nearly every call.
inline bool outputs_may_overlap(const Call& call) {
  bool meet = false;
  for (std::size_t i = 0; i < call.outputs.size(); ++i) {
    for (const Tensor* in : call.inputs) meet |= ranges_meet(*call.outputs[i], *in);
    for (std::size_t j = 0; j < i; ++j) meet |= ranges_meet(*call.outputs[i], *call.outputs[j]);
  }
  return meet;
}

/// Where elements are: `element` bytes each from `begin` on, in steps of bytes. Steps are not negative.
struct Region {
  std::uintptr_t begin = 0;
  std::int64_t element = 0;
  Dims extents = {};
  Dims steps = {};
};

Region region_of(const Tensor& tensor);
/// Whether they have a byte in common: exact, unless the strides make finding out very long, where it says yes.
bool share_bytes(const Region& a, const Region& b);
/// Whether two of its elements have a byte in common, as exact as share_bytes.
bool overlaps_itself(const Region& region);

/// Whether they have memory in common.
bool share_memory(const Tensor& a, const Tensor& b);

/// Fails where an output overlaps an input or another output. Allowed is an output that is exactly an input which the
/// op's row lets it overwrite (InputSpec::in_place).
void check_overlaps(const Call& call);

}  // namespace xpuruntime
