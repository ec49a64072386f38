#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/softmax.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t picoseconds = 400;  // about what an element takes

std::int64_t chunks_of(const SoftmaxJob& job) {
  if (job.lines.inner != 1) return 1;
  return (job.lines.length + softmax_chunk - 1) / softmax_chunk;
}

class SoftmaxPlan final : public Plan {
 public:
  explicit SoftmaxPlan(const Problem& problem)
      : job_(softmax_job(problem)), chunks_(chunks_of(job_)), threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    const void* x = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (job_.lines.length == 0) return {};
    if (chunks_ > 1) {
      long_rows(x, out, static_cast<ChunkSum*>(arguments.workspace));
      return {};
    }
    const auto lines = job_.lines.inner == 1 ? softmax_of_rows : softmax_of_columns;
    parallel_for(job_.lines.count(), lines_per_thread(job_.lines.length, picoseconds), threads_,
                 [&](std::int64_t begin, std::int64_t end) { lines(job_, x, out, begin, end); });
    return {};
  }

 private:
  /// Many rows: each stays with one thread, and in its cache. Few: all threads share each row's chunks.
  void long_rows(const void* x, void* out, ChunkSum* sums) const {
    if (job_.lines.outer >= 4 * threads_) {
      return parallel_for(job_.lines.outer, 1, threads_, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t r = begin; r < end; ++r) {
          add_up(x, out, sums, r * chunks_, (r + 1) * chunks_);
          write(x, out, sums, r * chunks_, (r + 1) * chunks_);
        }
      });
    }
    const std::int64_t units = job_.lines.outer * chunks_, grain = lines_per_thread(softmax_chunk, picoseconds);
    parallel_for(units, grain, threads_,
                 [&](std::int64_t begin, std::int64_t end) { add_up(x, out, sums, begin, end); });
    parallel_for(units, grain, threads_,
                 [&](std::int64_t begin, std::int64_t end) { write(x, out, sums, begin, end); });
  }

  std::int64_t offset_of(std::int64_t unit) const {
    return unit / chunks_ * job_.lines.length + unit % chunks_ * softmax_chunk;
  }
  std::int64_t size_of_chunk(std::int64_t unit) const {
    return std::min(softmax_chunk, job_.lines.length - unit % chunks_ * softmax_chunk);
  }

  void add_up(const void* x, void* out, ChunkSum* sums, std::int64_t begin, std::int64_t end) const {
    for (std::int64_t u = begin; u < end; ++u) {
      sums[u] = softmax_chunk_sum(job_, x, out, offset_of(u), size_of_chunk(u));
    }
  }

  void write(const void* x, void* out, const ChunkSum* sums, std::int64_t begin, std::int64_t end) const {
    ChunkSum row;
    for (std::int64_t u = begin; u < end; ++u) {
      if (u == begin || u % chunks_ == 0) row = combined(sums + u / chunks_ * chunks_, chunks_);
      softmax_chunk_write(job_, x, out, offset_of(u), size_of_chunk(u), sums[u], row);
    }
  }

  SoftmaxJob job_;
  std::int64_t chunks_;
  int threads_;
};

}  // namespace

SoftmaxJob softmax_job(const Problem& problem) {
  const TensorSpec& in = problem.inputs[0];
  return {in.dtype, problem.op == OpId::log_softmax, lines_along(in.shape, problem.attributes.integer("dim"))};
}

Verdict supports_softmax_simd(const Problem& problem, const DeviceProfile&) { return supports_lines(problem); }

std::uint64_t workspace_softmax_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.direction == Direction::backward) return 0;
  const SoftmaxJob job = softmax_job(problem);
  const std::int64_t chunks = chunks_of(job);
  return chunks > 1 ? static_cast<std::uint64_t>(job.lines.outer * chunks) * sizeof(ChunkSum) : 0;
}

std::unique_ptr<const Plan> prepare_softmax_simd(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_softmax_backward_simd(problem);
  return std::make_unique<SoftmaxPlan>(problem);
}

}  // namespace xpuruntime::cpu
