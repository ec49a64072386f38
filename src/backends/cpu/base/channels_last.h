#pragma once

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

inline Verdict refuse_image_layouts() {
  return Verdict::no("input and output are neither both contiguous nor both with dense channels last");
}

}  // namespace xpuruntime::cpu
