#pragma once

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// Dense, the second dim the innermost in memory and the others in their order: what PyTorch calls channels_last.
inline bool has_channels_last(const TensorSpec& spec) {
  Dims strides = Dims::filled(spec.shape.size(), 1);
  std::int64_t stride = spec.shape[1];
  for (std::size_t i = spec.shape.size(); i-- > 0;) {
    if (i == 1) continue;
    strides[i] = stride;
    stride *= spec.shape[i];
  }
  for (std::size_t i = 0; i < spec.shape.size(); ++i) {
    if (spec.shape[i] != 1 && spec.strides[i] != strides[i]) return false;
  }
  return true;
}

inline Verdict refuse_image_layouts() {
  return Verdict::no("input and output are neither both contiguous nor both with dense channels last");
}

}  // namespace xpuruntime::cpu
