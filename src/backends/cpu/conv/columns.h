#pragma once

#include <cstdint>

#include "backends/cpu/conv/shape.h"

namespace xpuruntime::cpu {

/// Some consecutive outputs of one group of one image as columns of the values that each sums.
struct Columns {
  DataType dtype = {};
  const void* image = nullptr;  // first channel of the group
  const void* end = nullptr;    // of the whole tensor, up to which may be read
  std::int64_t begin = 0, count = 0;
  float* to = nullptr;  // [depth][count] floats and vector_slack more
};

void fill_columns(const ConvShape& shape, const Columns& columns);

/// Adds a bias to the first `count` of a row of sums, and stores them.
void put_sums(const float* sums, std::int64_t count, float bias, DataType dtype, void* to);

}  // namespace xpuruntime::cpu
