#pragma once

#include <optional>
#include <string_view>

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

}  // namespace xpuruntime
