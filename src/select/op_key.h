#pragma once

#include <string_view>

#include "core/names.h"
#include "xpuruntime/registry/kernel_dtype.h"

namespace xpuruntime {

/// Without regard to case and underscores: as ops are found by name.
struct NameLess {
  using is_transparent = void;
  bool operator()(std::string_view a, std::string_view b) const { return compare_letters(a, b) < 0; }
};

/// An op in one precision. The name belongs to the op table or to the selector's own ops; both keep it for good.
struct OpKey {
  std::string_view op = {};
  KernelDtype dtype = KernelDtype::float32;
};

struct OpKeyLess {
  bool operator()(const OpKey& a, const OpKey& b) const {
    return a.dtype != b.dtype ? a.dtype < b.dtype : compare_letters(a.op, b.op) < 0;
  }
};

}  // namespace xpuruntime
