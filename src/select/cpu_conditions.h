#pragma once

#include "xpuruntime/core/problem.h"
#include "xpuruntime/device/profile.h"

// What the built-in rules for the CPU ask. Their figures are from bench/cpu_bench on two cores of a Sapphire Rapids.

namespace xpuruntime::cpu_rules {

bool forward(const Problem& problem, const DeviceProfile& profile);
bool backward(const Problem& problem, const DeviceProfile& profile);

// Of matmul and linear. Backward, they ask after the products that the gradients are.
bool few_rows(const Problem& problem, const DeviceProfile& profile);
bool few_columns(const Problem& problem, const DeviceProfile& profile);
bool fits_first_cache(const Problem& problem, const DeviceProfile& profile);
bool bf16_with_matrix_instructions(const Problem& problem, const DeviceProfile& profile);
bool bytes_with_matrix_instructions(const Problem& problem, const DeviceProfile& profile);
bool bytes(const Problem& problem, const DeviceProfile& profile);
bool whole_vectors_on_x86(const Problem& problem, const DeviceProfile& profile);

// Of convolutions, forward; only x86_vectors is for both directions.
bool depthwise_on_large_planes(const Problem& problem, const DeviceProfile& profile);
bool depthwise(const Problem& problem, const DeviceProfile& profile);
bool narrow_groups(const Problem& problem, const DeviceProfile& profile);
bool pointwise(const Problem& problem, const DeviceProfile& profile);
bool small_filter_on_an_image(const Problem& problem, const DeviceProfile& profile);
bool many_tiles_3x3(const Problem& problem, const DeviceProfile& profile);
bool x86_vectors(const Problem& problem, const DeviceProfile& profile);
bool stride_one_3x3(const Problem& problem, const DeviceProfile& profile);
bool other_layout_on_x86(const Problem& problem, const DeviceProfile& profile);
bool other_layout_on_small_planes(const Problem& problem, const DeviceProfile& profile);
bool other_layout(const Problem& problem, const DeviceProfile& profile);

// Of attention.
bool few_queries(const Problem& problem, const DeviceProfile& profile);

}  // namespace xpuruntime::cpu_rules
