#pragma once

#include <cstdint>

#include "backends/cpu/pool/shape.h"

namespace xpuruntime::cpu {

/// Some consecutive rows of the output of a pool whose tensors have their channels last: a window is combined pixel by
/// pixel, with vectors along the channels.
struct PoolPixels {
  const PoolShape* shape = nullptr;
  const void* in = nullptr;  // the whole tensors
  void* out = nullptr;
  std::int64_t begin = 0, end = 0;         // rows of all images
  const std::int64_t* z_counts = nullptr;  // divisors of averages
  const std::int64_t* y_counts = nullptr;
  const std::int64_t* x_counts = nullptr;
};

/// The windows it takes have at most this many taps.
inline constexpr std::int64_t most_pixel_taps = 256;

void run_pool_pixels(const PoolPixels& pixels, DataType in, DataType out);

}  // namespace xpuruntime::cpu
