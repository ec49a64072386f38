#pragma once

#include "xpuruntime/core/data_type.h"

namespace xpuruntime {

/// What `lower` and `higher` mean in a precision rule.
struct AmpConfig {
  bool enabled = true;  // false: rules change nothing at all
  DataType target_precision = DataType::bfloat16;
  DataType higher_precision = DataType::float32;

  bool operator==(const AmpConfig&) const = default;

  static AmpConfig create_default() { return {}; }
  static AmpConfig create_fp16() { return {.target_precision = DataType::float16}; }
  static AmpConfig create_bf16() { return {.target_precision = DataType::bfloat16}; }

  /// Fails if the target is not float16 or bfloat16, or the higher precision not float32 or float64.
  void check() const;
};

}  // namespace xpuruntime
