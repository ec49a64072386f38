#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/norm/kernels.h"
#include "backends/cpu/norm/layer_norm.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

constexpr std::int64_t picoseconds = 150;  // about what an element takes

/// How many dims a row has, which are the last.
std::int64_t dims_of_row(const Problem& problem) {
  return problem.op == OpId::layer_norm ? problem.attributes.integer("normalized_rank") : 1;
}

LayerNormJob job_of(const Problem& problem) {
  const TensorSpec& in = problem.inputs[0];
  return {in.dtype, problem.op == OpId::layer_norm, lines_along_last(in.shape, dims_of_row(problem)),
          problem.attributes.real("eps")};
}

std::int64_t chunks_of(const LayerNormJob& job) { return (job.lines.length + layer_norm_chunk - 1) / layer_norm_chunk; }

/// The workspace holds the moments of long rows' chunks, then the parameters that are not f32.
struct Room {
  std::uint64_t moments = 0;
  std::uint64_t parameter = 0;  // bytes of one that is widened
};

Room room_of(const LayerNormJob& job) {
  const auto padded = [](std::uint64_t bytes) { return (bytes + 63) / 64 * 64; };
  Room room;
  const auto units = static_cast<std::uint64_t>(job.lines.outer * chunks_of(job));
  if (chunks_of(job) > 1) room.moments = padded(units * sizeof(Moments));
  room.parameter = padded(static_cast<std::uint64_t>(job.lines.length) * sizeof(float));
  return room;
}

class LayerNormPlan final : public Plan {
 public:
  explicit LayerNormPlan(const Problem& problem)
      : job_(job_of(problem)),
        row_dims_(dims_of_row(problem)),
        weight_(weight_of(problem)),
        chunks_(chunks_of(job_)),
        threads_(threads_for(problem)) {}

  Status run(const RunArguments& arguments) const override {
    if (job_.lines.length == 0) return {};
    auto* workspace = static_cast<std::byte*>(arguments.workspace);
    auto* moments = reinterpret_cast<Moments*>(workspace);
    LayerNormJob job = job_;
    job.lines = lines_along_last(arguments.inputs[0]->shape(), row_dims_);
    std::byte* room = workspace + room_of(job).moments;
    if (arguments.inputs.size() > weight_) job.weight = parameter(*arguments.inputs[weight_], room);
    if (arguments.inputs.size() > weight_ + 1) job.bias = parameter(*arguments.inputs[weight_ + 1], room);
    if (weight_ > 1) {
      job.residual = arguments.inputs[1]->as<const std::byte>();
      job.sum = arguments.outputs[1]->as<std::byte>();
    }
    const void* x = arguments.inputs[0]->as<const std::byte>();
    void* out = arguments.outputs[0]->as<std::byte>();
    if (chunks_ > 1) {
      long_rows(job, x, out, moments);
    } else {
      parallel_for(job.lines.outer, lines_per_thread(job.lines.length, picoseconds), threads_,
                   [&](std::int64_t begin, std::int64_t end) { layer_norm_rows(job, x, out, begin, end); });
    }
    return {};
  }

 private:
  const float* parameter(const Tensor& tensor, std::byte*& room) const {
    if (tensor.dtype() == DataType::float32) return tensor.as<const float>();
    auto* widened = reinterpret_cast<float*>(room);
    widen_parameter(tensor.as<const std::byte>(), tensor.dtype(), job_.lines.length, widened);
    room += room_of(job_).parameter;
    return widened;
  }

  void long_rows(const LayerNormJob& job, const void* x, void* out, Moments* moments) const {
    // Many rows: each stays with one thread, and in its cache. Few: all threads share each row's chunks.
    const bool many = job.lines.outer >= 4 * threads_;
    const std::int64_t rows_at_once = many ? 1 : job.lines.outer;
    const auto some_rows = [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; r += rows_at_once) few_rows(job, x, out, moments, r, r + rows_at_once);
    };
    many ? parallel_for(job.lines.outer, 1, threads_, some_rows) : some_rows(0, job.lines.outer);
  }

  void few_rows(const LayerNormJob& job, const void* x, void* out, Moments* moments, std::int64_t begin,
                std::int64_t end) const {
    const std::int64_t grain = lines_per_thread(layer_norm_chunk, picoseconds), first = begin * chunks_;
    const std::int64_t units = (end - begin) * chunks_;
    parallel_for(units, grain, threads_, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t u = first + from; u < first + to; ++u) {
        moments[u] = layer_norm_moments(job, x, offset_of(u), size_of_chunk(u));
      }
    });
    parallel_for(units, grain, threads_, [&](std::int64_t from, std::int64_t to) {
      Moments row;
      for (std::int64_t u = first + from; u < first + to; ++u) {
        if (u == first + from || u % chunks_ == 0) row = moments_of_row(moments, u / chunks_);
        layer_norm_write(job, x, out, offset_of(u), size_of_chunk(u), u % chunks_ * layer_norm_chunk, row);
      }
    });
  }

  Moments moments_of_row(const Moments* moments, std::int64_t row) const {
    Moments all = moments[row * chunks_];
    for (std::int64_t i = 1; i < chunks_; ++i) all.add(moments[row * chunks_ + i]);
    return all;
  }

  std::int64_t offset_of(std::int64_t unit) const {
    return unit / chunks_ * job_.lines.length + unit % chunks_ * layer_norm_chunk;
  }
  std::int64_t size_of_chunk(std::int64_t unit) const {
    return std::min(layer_norm_chunk, job_.lines.length - unit % chunks_ * layer_norm_chunk);
  }

  LayerNormJob job_;  // but for the number of rows
  std::int64_t row_dims_;
  std::size_t weight_;  // its place among the inputs; before it there may be a residual
  std::int64_t chunks_;
  int threads_;
};

}  // namespace

Verdict supports_layer_norm_simd(const Problem& problem, const DeviceProfile&) {
  if (const Verdict verdict = supports_lines(problem); !verdict.supported || !adds_residual(problem)) return verdict;
  const DataType in = problem.inputs[0].dtype, residual = problem.inputs[1].dtype, sum = problem.outputs[1].dtype;
  if (const Verdict same = is_same_dtype("input 1", residual, "the input's", in); !same.supported) return same;
  return is_same_dtype("output 1", sum, "the input's", in);
}

std::uint64_t workspace_layer_norm_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.direction == Direction::backward) return workspace_layer_norm_backward(problem);
  const Room room = room_of(job_of(problem));
  std::uint64_t bytes = room.moments;
  for (std::size_t i = weight_of(problem); i < problem.inputs.size(); ++i) {
    if (problem.inputs[i].dtype != DataType::float32) bytes += room.parameter;
  }
  return bytes;
}

std::optional<Problem> layer_norm_of_any_rows(const Problem& problem) {
  if (problem.direction == Direction::backward) return {};
  Problem any = problem;
  const auto one_row = [row_dims = static_cast<std::size_t>(dims_of_row(problem))](TensorSpec& spec) {
    for (std::size_t i = 0; i + row_dims < spec.shape.size(); ++i) spec.shape[i] = 1;
    spec = make_spec(spec.dtype, spec.shape);
  };
  for (std::size_t i = 0; i < weight_of(problem); ++i) one_row(any.inputs[i]);
  for (TensorSpec& output : any.outputs) one_row(output);
  return any;
}

std::unique_ptr<const Plan> prepare_layer_norm_simd(const Problem& problem, const PrepareContext&) {
  if (problem.direction == Direction::backward) return prepare_layer_norm_backward_simd(problem);
  return std::make_unique<LayerNormPlan>(problem);
}

}  // namespace xpuruntime::cpu
