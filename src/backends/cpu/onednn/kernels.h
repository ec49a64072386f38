#pragma once

#include <memory>
#include <string>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family. A build without oneDNN has them too (absent.cpp): they
// refuse every problem with that reason.

namespace xpuruntime::cpu {

/// matmul and linear.
Verdict supports_product_onednn(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_product_onednn(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_product_onednn(const Problem& problem, const PrepareContext& context);

/// conv2d and conv3d.
Verdict supports_conv_onednn(const Problem& problem, const DeviceProfile& profile);
std::uint64_t workspace_conv_onednn(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_onednn(const Problem& problem, const PrepareContext& context);

/// "2.6.3"; empty in a build without it, and where it could not be opened.
std::string onednn_version();

}  // namespace xpuruntime::cpu
