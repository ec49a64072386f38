#pragma once

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

/// What a device can do for one op in one dtype: a fact about this device and build.
struct KernelCapability {
  DataType dtype = DataType::float32;
  bool is_available = true;
  bool supports_tensor_cores = false;
  float performance_factor = 1.0f;  // against FP32, higher is faster
  float memory_efficiency = 1.0f;   // against FP32, higher needs less

  bool operator==(const KernelCapability&) const = default;

  static KernelCapability create_float32(bool supports_tensor_cores = false) {
    return {DataType::float32, true, supports_tensor_cores, 1.0f, 1.0f};
  }
  static KernelCapability create_float16(bool supports_tensor_cores = true) {
    return {DataType::float16, true, supports_tensor_cores, 2.0f, 2.0f};
  }
  static KernelCapability create_bfloat16(bool supports_tensor_cores = true) {
    return {DataType::bfloat16, true, supports_tensor_cores, 2.0f, 2.0f};
  }
};

}  // namespace xpuruntime
