#include "xpuruntime/registry/kernel_dtype.h"

#include <span>

#include "core/names.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view names[kernel_dtype_count] = {"f32", "f16", "bf16", "mixed", "auto"};

struct Spelling {
  std::string_view text;
  KernelDtype dtype;
};

constexpr Spelling own_spellings[] = {{"mixed", KernelDtype::mixed},
                                      {"mixed_precision", KernelDtype::mixed},
                                      {"auto", KernelDtype::auto_select},
                                      {"automatic", KernelDtype::auto_select},
                                      {"auto_select", KernelDtype::auto_select}};

// What a misspelling is compared with; the errors of parse_data_type would offer types that are none here.
constexpr std::string_view known[] = {"f32",      "f16",     "bf16",    "mixed", "auto",   "fp32", "fp16",
                                      "bfloat16", "float32", "float16", "float", "single", "half"};

}  // namespace

std::string_view to_string(KernelDtype dtype) {
  const auto index = static_cast<int>(dtype);
  if (index >= kernel_dtype_count) {
    fail(ErrorCode::invalid_argument, "kernel_dtype", "a KernelDtype outside its range; pass one of the enum's values");
  }
  return names[index];
}

std::optional<KernelDtype> find_kernel_dtype(std::string_view name) {
  for (const Spelling& spelling : own_spellings) {
    if (is_spelling_of(name, spelling.text)) return spelling.dtype;
  }
  const std::optional<DataType> dtype = find_data_type(name);
  if (!dtype) return std::nullopt;
  const KernelDtype kernel_dtype = to_kernel_dtype(*dtype);
  return to_data_type(kernel_dtype) == dtype ? std::optional(kernel_dtype) : std::nullopt;
}

KernelDtype parse_kernel_dtype(std::string_view name) {
  if (const auto dtype = find_kernel_dtype(name)) return *dtype;
  std::span<const std::string_view> shown = names;
  if (!near_names(name, known).empty()) shown = known;
  fail_unknown("parse_kernel_dtype", "kernel dtype", name, shown);
}

KernelDtype to_kernel_dtype(DataType dtype) {
  switch (dtype) {
    case DataType::float16:
      return KernelDtype::float16;
    case DataType::bfloat16:
      return KernelDtype::bfloat16;
    default:
      to_string(dtype);  // a value outside the enum is an error here
      return KernelDtype::float32;
  }
}

std::optional<DataType> to_data_type(KernelDtype dtype) {
  switch (dtype) {
    case KernelDtype::float32:
      return DataType::float32;
    case KernelDtype::float16:
      return DataType::float16;
    case KernelDtype::bfloat16:
      return DataType::bfloat16;
    default:
      to_string(dtype);  // as above
      return std::nullopt;
  }
}

}  // namespace xpuruntime
