#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

/// The precision of a kernel, as coarse as mixed precision speaks of it.
enum class KernelDtype : std::uint8_t {
  float32 = 0,  // the default: FP32, and what has no value of its own here (FP64, TF32, FP8, integers)
  float16 = 1,
  bfloat16 = 2,
  mixed = 3,        // inputs of several dtypes
  auto_select = 4,  // no preference
};
inline constexpr int kernel_dtype_count = 5;

/// "f32", "f16", "bf16", "mixed", "auto".
std::string_view to_string(KernelDtype dtype);

/// Reads every spelling that data types have (`fp16`, `half`, `Float16`) and `mixed` and `auto`, in any case; nothing
/// for all else, data types without a value here among it.
std::optional<KernelDtype> find_kernel_dtype(std::string_view name);

/// Like find_kernel_dtype, but an unknown name is an error that lists the near ones.
KernelDtype parse_kernel_dtype(std::string_view name);

/// The 16-bit floats are themselves, all else is float32. That narrows nothing: it only names the kernel's precision,
/// and an FP64 tensor is still computed in FP64.
KernelDtype to_kernel_dtype(DataType dtype);

/// The data type that float32, float16 and bfloat16 stand for; nothing for mixed and auto_select.
std::optional<DataType> to_data_type(KernelDtype dtype);

}  // namespace xpuruntime
