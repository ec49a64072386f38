#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_text.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime {

/// Reads the bytes of a NumPy array file (.npy; header versions 1 to 3) into new memory on the CPU: little-endian, in C
/// order, of a dtype of ours. All else is an error that says how to save the array; nothing in the file is run.
Tensor parse_npy(std::string_view bytes, const JsonSource& source);

/// The same from a file of at most 4 GiB.
Tensor load_npy(const std::string& path);

/// The bytes of a .npy file. The tensor is contiguous and on the CPU. Dtypes that such files do not have (bf16, tf32
/// and those of 8 bits) are written as f32, which holds each of their values.
std::string npy_bytes(const Tensor& tensor);

/// The bytes of a .npz file, an archive of .npy files without compression, as numpy.load reads it. Names are those of
/// the arrays. Up to 4 GiB in all.
std::string npz_bytes(const std::vector<std::pair<std::string, Tensor>>& arrays);

}  // namespace xpuruntime
