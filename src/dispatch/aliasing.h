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

/// Whether they have memory in common; columns or channels of one buffer side by side have not.
bool share_memory(const Tensor& a, const Tensor& b);

/// Fails where an output lies over an input or another output. Allowed is an output that is exactly an input of an
/// elementwise op, or a running statistic that is updated in place.
void check_overlaps(const Call& call);

}  // namespace xpuruntime
