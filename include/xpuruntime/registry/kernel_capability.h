#pragma once

#include "xpuruntime/registry/kernel_dtype.h"

namespace xpuruntime {

/// What a device can do for one op in one precision: a fact about this device and build.
struct KernelCapability {
  KernelDtype dtype = KernelDtype::float32;
  bool is_available = true;
  bool supports_tensor_cores = false;
  float performance_factor = 1.0f;  // against FP32, higher is faster
  float memory_efficiency = 1.0f;   // against FP32, higher needs less

  bool operator==(const KernelCapability&) const = default;

  /// An error if it is of no certain dtype (auto_select) or a factor is not finite and positive.
  void check() const;

  static KernelCapability create_float32(bool supports_tensor_cores = false) {
    return {KernelDtype::float32, true, supports_tensor_cores, 1.0f, 1.0f};
  }
  static KernelCapability create_float16(bool supports_tensor_cores = true) {
    return {KernelDtype::float16, true, supports_tensor_cores, 2.0f, 2.0f};
  }
  static KernelCapability create_bfloat16(bool supports_tensor_cores = true) {
    return {KernelDtype::bfloat16, true, supports_tensor_cores, 2.0f, 2.0f};
  }
};

}  // namespace xpuruntime
