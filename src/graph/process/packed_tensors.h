#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/json_text.h"
#include "xpuruntime/core/tensor.h"

namespace xpuruntime::process {

/// How many bytes tensors take side by side, each at a multiple of 64.
std::size_t packed_bytes(std::span<const Tensor> tensors);
/// Dtypes, shapes and places; the elements go to `to`, in the order of the indices. Tensors are on the CPU.
Json pack(std::span<const Tensor> tensors, std::byte* to);
/// New tensors. Fails with `device_error` where the bytes are not those of the shapes.
std::vector<Tensor> unpack(const Json& specs, std::span<const std::byte> bytes);

}  // namespace xpuruntime::process
