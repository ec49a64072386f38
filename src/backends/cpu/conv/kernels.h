#pragma once

#include <memory>

#include "xpuruntime/registry/kernel.h"

// The functions of the CPU table's rows of this family. Each serves conv2d and conv3d alike, but for winograd.

namespace xpuruntime::cpu {

std::unique_ptr<const Plan> prepare_conv_reference(const Problem& problem, const PrepareContext& context);
std::unique_ptr<const Plan> prepare_conv_backward_reference(const Problem& problem);

Verdict supports_conv_direct(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_direct(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_conv_direct(const Problem& problem, const DeviceProfile& profile);

Verdict supports_conv_im2col(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_im2col(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_conv_im2col(const Problem& problem, const DeviceProfile& profile);
// What it does with backward problems.
Verdict supports_conv_im2col_backward(const Problem& problem);
std::unique_ptr<const Plan> prepare_conv_im2col_backward(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_conv_im2col_backward(const Problem& problem, const DeviceProfile& profile);

Verdict supports_conv_winograd(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_winograd(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_conv_winograd(const Problem& problem, const DeviceProfile& profile);

Verdict supports_conv_depthwise(const Problem& problem, const DeviceProfile& profile);
std::unique_ptr<const Plan> prepare_conv_depthwise(const Problem& problem, const PrepareContext& context);
std::uint64_t workspace_conv_depthwise(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::cpu
