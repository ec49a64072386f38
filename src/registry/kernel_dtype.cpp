#include "xpuruntime/registry/kernel_dtype.h"

#include <vector>

#include "core/names.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

struct Spelling {
  std::string_view text;
  KernelDtype dtype;
};

constexpr Spelling own_spellings[] = {{"mixed", KernelDtype::mixed},
                                      {"mixed_precision", KernelDtype::mixed},
                                      {"auto", KernelDtype::auto_select},
                                      {"automatic", KernelDtype::auto_select},
                                      {"auto_select", KernelDtype::auto_select}};

}  // namespace

std::string_view to_string(KernelDtype dtype) {
  if (const auto own = to_data_type(dtype)) return to_string(*own);
  return dtype == KernelDtype::mixed ? "mixed" : "auto";
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
  std::vector<std::string_view> known;
  for (int i = 0; i < kernel_dtype_count; ++i) known.push_back(to_string(static_cast<KernelDtype>(i)));
  // Longer spellings are offered where one is near; the errors of parse_data_type would offer types that are none here.
  for (const std::string_view spelling : data_type_spellings()) {
    if (find_kernel_dtype(spelling)) known.push_back(spelling);
  }
  if (near_names(name, known).empty()) known.resize(kernel_dtype_count);
  fail_unknown("parse_kernel_dtype", "kernel dtype", name, known);
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
    case KernelDtype::mixed:
    case KernelDtype::auto_select:
      return std::nullopt;
  }
  fail(ErrorCode::invalid_argument, "kernel_dtype", "a KernelDtype outside its range; pass one of the enum's values");
}

}  // namespace xpuruntime
