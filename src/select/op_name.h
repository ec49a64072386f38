#pragma once

#include <optional>
#include <string_view>

#include "core/names.h"
#include "xpuruntime/registry/kernel_dtype.h"

namespace xpuruntime {

/// A name taken apart: `conv2d_fp16` is conv2d and float16.
struct OpName {
  std::string_view op = {};
  std::optional<KernelDtype> dtype = {};
};

/// Takes a dtype off the end where there is one that is written with digits: `split_half` is a name like any other.
OpName split_name(std::string_view name);

/// The end of `add_fp61` or `add_int8`: it looks like a dtype and is none of a kernel's. Empty if there is none.
std::string_view wrong_dtype_suffix(std::string_view name);

/// A letter, then letters, digits and underscores, at most 64: what an op may be called.
bool is_op_name(std::string_view name);

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
