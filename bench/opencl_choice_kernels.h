#pragma once

#include <array>
#include <cstdint>

#include "xpuruntime/device/source_function.h"

namespace xpuruntime::bench {

// Kernels as a user writes them first, none with local memory: their speed is up to the local size.
inline constexpr const char* local_size_source = R"(
__kernel void scale_add(__global const float* x, __global float* y, int n, int unused) {
  const int i = get_global_id(0);
  if (i < n) y[i] = 2.0f * x[i] + y[i];
}
__kernel void row_sums(__global const float* x, __global float* y, int rows, int columns) {
  const int row = get_global_id(0);
  if (row >= rows) return;
  float sum = 0;
  for (int i = 0; i < columns; ++i) sum += x[row * columns + i];
  y[row] = sum;
}
__kernel void column_sums(__global const float* x, __global float* y, int columns, int rows) {
  const int column = get_global_id(0);
  if (column >= columns) return;
  float sum = 0;
  for (int i = 0; i < rows; ++i) sum += x[i * columns + column];
  y[column] = sum;
}
__kernel void orbit(__global const float* x, __global float* y, int n, int most) {
  const int i = get_global_id(0);
  if (i >= n) return;
  float a = 0, b = 0;
  int steps = 0;
  for (; steps < most && a * a + b * b < 4.0f; ++steps) {
    const float next = a * a - b * b + x[i] * 2.0f - 0.5f;
    b = 2.0f * a * b + (float)i / (float)n;
    a = next;
  }
  y[i] = (float)steps;
}
__kernel void transpose(__global const float* x, __global float* y, int columns, int rows) {
  const int i = get_global_id(0), j = get_global_id(1);
  if (i < columns && j < rows) y[i * rows + j] = x[j * columns + i];
}
__kernel void blur(__global const float* x, __global float* y, int columns, int rows) {
  const int i = get_global_id(0), j = get_global_id(1);
  if (i < 1 || j < 1 || i >= columns - 1 || j >= rows - 1) return;
  float sum = 0;
  for (int v = -1; v <= 1; ++v)
    for (int u = -1; u <= 1; ++u) sum += x[(j + v) * columns + i + u];
  y[j * columns + i] = sum / 9.0f;
}
__kernel void product(__global const float* x, __global float* y, int n, int k) {
  const int column = get_global_id(0), row = get_global_id(1);
  if (column >= n || row >= n) return;
  float sum = 0;
  for (int i = 0; i < k; ++i) sum += x[row * k + i] * x[i * n + column];
  y[row * n + column] = sum;
}
)";

struct LocalSizeRow {
  const char* function = "";
  std::int64_t elements = 0;  // of both tensors
  WorkSize global = {1, 1, 1};
  std::array<std::int32_t, 2> values = {};
};

inline constexpr LocalSizeRow local_size_rows[] = {
    {"scale_add", 4096, {4096, 1, 1}, {4096, 0}},
    {"scale_add", 1000003, {1000003, 1, 1}, {1000003, 0}},
    {"scale_add", 1 << 24, {1 << 24, 1, 1}, {1 << 24, 0}},
    {"row_sums", 128 * 4096, {128, 1, 1}, {128, 4096}},
    {"row_sums", 4096 * 1024, {4096, 1, 1}, {4096, 1024}},
    {"row_sums", 65536 * 64, {65536, 1, 1}, {65536, 64}},
    {"column_sums", 128 * 4096, {128, 1, 1}, {128, 4096}},
    {"column_sums", 4096 * 1024, {4096, 1, 1}, {4096, 1024}},
    {"orbit", 2000, {2000, 1, 1}, {2000, 500}},
    {"orbit", 100000, {100000, 1, 1}, {100000, 200}},
    {"transpose", 256 * 256, {256, 256, 1}, {256, 256}},
    {"transpose", 2048 * 2048, {2048, 2048, 1}, {2048, 2048}},
    {"transpose", 64 * 65536, {64, 65536, 1}, {64, 65536}},
    {"blur", 256 * 256, {256, 256, 1}, {256, 256}},
    {"blur", 2048 * 2048, {2048, 2048, 1}, {2048, 2048}},
    {"product", 128 * 128, {128, 128, 1}, {128, 128}},
    {"product", 512 * 512, {512, 512, 1}, {512, 512}},
    {"product", 1000 * 1000, {1000, 1000, 1}, {1000, 100}},
};

// One of these would stand in the source. Zeros: the driver's own choice, which is not a fixed one.
inline constexpr WorkSize fixed_local_sizes[] = {{0, 0, 0},   {16, 1, 1},  {32, 1, 1}, {64, 1, 1}, {128, 1, 1},
                                                 {256, 1, 1}, {512, 1, 1}, {8, 8, 1},  {16, 4, 1}, {4, 16, 1},
                                                 {32, 2, 1},  {32, 4, 1},  {32, 8, 1}, {64, 4, 1}, {16, 16, 1}};

}  // namespace xpuruntime::bench
