#pragma once

#include "backends/cpu/norm/lines.h"

namespace xpuruntime::cpu {

/// softmax or log_softmax of a dense tensor.
struct SoftmaxJob {
  DataType dtype = DataType::float32;
  bool log = false;
  Lines lines = {};
};

SoftmaxJob softmax_job(const Problem& problem);

/// Longer rows are cut into chunks of this length, which stay in the first cache between their two passes.
inline constexpr std::int64_t softmax_chunk = 4096;

/// What a chunk of a row says of it: the sum is that of exp(x - highest).
struct ChunkSum {
  float highest = 0;
  float sum = 0;
};

/// Rows [begin, end) of at most softmax_chunk elements.
void softmax_of_rows(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end);

/// One chunk of a longer row, n elements from `offset` on; f32 softmax leaves exp(x - highest) in `out`.
ChunkSum softmax_chunk_sum(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n);
/// The same chunk again, now that `row` is known of the whole row.
void softmax_chunk_write(const SoftmaxJob& job, const void* x, void* out, std::int64_t offset, std::int64_t n,
                         ChunkSum chunk, ChunkSum row);
/// What the chunks say together.
ChunkSum combined(const ChunkSum* chunks, std::int64_t count);

/// Lines [begin, end) of those across the inner dim: line i of outer position i / inner.
void softmax_of_columns(const SoftmaxJob& job, const void* x, void* out, std::int64_t begin, std::int64_t end);

/// The gradient of x in the same lines, of either kind, from that of the output.
void softmax_gradient(const SoftmaxJob& job, const void* x, const void* gradient, void* out, std::int64_t begin,
                      std::int64_t end);

}  // namespace xpuruntime::cpu
