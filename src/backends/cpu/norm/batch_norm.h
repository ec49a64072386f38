#pragma once

#include "backends/cpu/norm/lines.h"
#include "backends/cpu/norm/moments.h"

namespace xpuruntime::cpu {

/// A dense batch, as planes [batch, channels, plane] or with its channels last: [rows, channels].
struct BatchNormJob {
  DataType dtype = DataType::float32;
  bool channels_last = false;
  std::int64_t batch = 1;  // with channels last: all rows
  std::int64_t channels = 1;
  std::int64_t plane = 1;  // with channels last: 1

  std::int64_t count() const { return batch * plane; }  // values of a channel
};

/// y = (x - mean) * scale + bias of one channel, or of all in three arrays.
struct BatchNormFactors {
  const float* mean = nullptr;
  const float* scale = nullptr;
  const float* bias = nullptr;
};

/// The moments of one channel over images [first, last) of planes, elements [from, to) of each.
Moments plane_moments(const BatchNormJob& job, const void* x, std::int64_t channel, std::int64_t first,
                      std::int64_t last, std::int64_t from, std::int64_t to);
/// Writes planes [begin, end), plane i being channel i % channels of image i / channels.
void write_planes(const BatchNormJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end,
                  std::int64_t step, BatchNormFactors factors);

/// The means and sums of squares of channels [begin, end) over rows [first, last), channels last.
void row_moments(const BatchNormJob& job, const void* x, std::int64_t first, std::int64_t last, std::int64_t begin,
                 std::int64_t end, float* means, float* squares);
/// Writes rows [first, last), channels last.
void write_rows(const BatchNormJob& job, const void* x, void* out, std::int64_t first, std::int64_t last,
                BatchNormFactors factors);

}  // namespace xpuruntime::cpu
