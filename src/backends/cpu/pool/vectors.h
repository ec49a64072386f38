#pragma once

#include <cstdint>

#include "backends/cpu/pool/shape.h"

namespace xpuruntime::cpu {

/// Some consecutive rows of a pool's output, counted over all planes. First the rows under the windows become one
/// row, then the values along it: both maxima and sums may be taken one dim after the other.
struct PoolRows {
  const PoolShape* shape = nullptr;
  const void* in = nullptr;  // the whole tensors
  void* out = nullptr;
  std::int64_t begin = 0, end = 0;
  const std::int64_t* z_counts = nullptr;  // divisors of averages
  const std::int64_t* y_counts = nullptr;
  const float* x_counts = nullptr;    // and vector_slack more
  const float* x_inverses = nullptr;  // 1 / x_counts
  float* scratch = nullptr;           // pool_scratch_floats

  float area(std::int64_t z, std::int64_t y) const { return static_cast<float>(z_counts[z] * y_counts[y]); }
};

// Values that are read right after they were written, at another offset, stall: some other rows go in between.
inline constexpr std::int64_t pool_rows_at_once = 8;

/// Room for the rows of one step, each with its padding, and for what whole vectors read and write past it.
std::int64_t pool_scratch_floats(const PoolShape& shape);

void run_pool_rows(const PoolRows& rows, DataType in, DataType out);

/// Whether this is a pool over planes with windows of 3x3 that move by one: they overlap so far that it pays to go down
/// the columns and keep what the rows under the next window gave.
bool is_threes(const PoolShape& shape);

/// The same as run_pool_rows for such a pool; needs no scratch.
void run_pool_threes(const PoolRows& rows, DataType in, DataType out);

/// From one image, plane, row or pixel to the next, in elements.
struct PixelSteps {
  std::int64_t image = 0, z = 0, y = 0, x = 0;
};

/// Some consecutive rows of the output of a pool whose tensors have their channels last, with gaps or without: a window
/// is combined pixel by pixel, with vectors along the channels.
struct PoolPixels {
  const PoolShape* shape = nullptr;
  PixelSteps in_steps = {}, out_steps = {};
  const void* in = nullptr;  // the whole tensors
  void* out = nullptr;
  std::int64_t begin = 0, end = 0;         // rows of all images
  const std::int64_t* z_counts = nullptr;  // divisors of averages
  const std::int64_t* y_counts = nullptr;
  const std::int64_t* x_counts = nullptr;
};

/// Windows of more taps are combined row by row.
inline constexpr std::int64_t most_pixel_taps = 256;

void run_pool_pixels(const PoolPixels& pixels, DataType in, DataType out);

}  // namespace xpuruntime::cpu
