#pragma once

#include <initializer_list>
#include <string_view>

#include "xpuruntime/registry/kernel.h"

// What kernels refuse problems for, worded alike in all backends. Each answers yes, or no with the reason. What a row
// says (KernelSpec::dtypes, alignment) is asked before its `supports` and need not be asked there.

namespace xpuruntime {

using Check = Verdict (*)(const Problem&, const DeviceProfile&);

/// Asks in order and returns the first refusal.
Verdict first_refusal(std::initializer_list<Check> checks, const Problem& problem, const DeviceProfile& profile);

/// Inputs that must be given are of `inputs` and outputs of `outputs`; optional inputs, and gradients in and out, of
/// either. Indices, and integers and booleans beside an op's precision, such as masks, are not asked.
Verdict takes_dtypes(const Problem& problem, DataTypeSet inputs, DataTypeSet outputs);
/// "input 1 is i32, and this kernel takes f32, f16 and bf16"
Verdict refuse_dtype(std::string_view which, DataType dtype, std::string_view takes);
/// "output 0 is f16, and this kernel takes the input's f32"
Verdict is_same_dtype(std::string_view which, DataType dtype, std::string_view whose, DataType other);
/// Input `first` and all after it are of the output's dtype: "input 1 is f16, and this kernel takes the output's f32".
Verdict has_one_dtype(const Problem& problem, std::size_t first = 0);

/// Every tensor that is given has elements: "input 0 is empty".
Verdict is_not_empty(const Problem& problem);
/// Every tensor is contiguous: "input 0 is not contiguous".
Verdict is_contiguous(const Problem& problem);
/// The inputs and the outputs from number `first` on are: those before it are asked about otherwise.
Verdict is_contiguous(const Problem& problem, std::size_t first);
Verdict is_contiguous(std::string_view which, const TensorSpec& spec);
/// What lies along the last dim is contiguous: "the rows of input 1 are not contiguous".
Verdict has_contiguous_rows(std::string_view which, const TensorSpec& spec);
/// Every tensor starts where one of its elements may: "input 0 is not aligned to its elements".
Verdict is_aligned(const Problem& problem);

/// "m = 17 is over 16"
Verdict is_at_most(std::string_view what, std::int64_t value, std::int64_t limit);

/// "compute capability 7.5 is below 8.0"
Verdict has_compute_capability(const DeviceProfile& profile, int major, int minor = 0);
/// "the CPU has no amx_bf16"
Verdict has_cpu_features(const DeviceProfile& profile, std::initializer_list<const char*> features);
/// By its name in the profile: "libcublas is not installed"
Verdict has_library(const DeviceProfile& profile, const char* name);

}  // namespace xpuruntime
