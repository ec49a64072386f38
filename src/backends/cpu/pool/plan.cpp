#include <algorithm>

#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/pool/kernels.h"
#include "backends/cpu/pool/vectors.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

int pool_threads(const Problem& problem, const PoolShape& shape) {
  constexpr std::int64_t few_elements = 1 << 15;
  return shape.planes() * shape.in[0] * shape.in[1] * shape.in[2] < few_elements ? 1 : threads_for(problem);
}

class SimdPlan final : public Plan {
 public:
  explicit SimdPlan(const Problem& problem)
      : shape_(pool_shape(problem)),
        threes_(is_threes(shape_)),
        threads_(pool_threads(problem, shape_)),
        in_(problem.inputs[0].dtype),
        out_(problem.outputs[0].dtype) {
    if (!shape_.average) return;
    z_counts_ = shape_.counts(0);
    y_counts_ = shape_.counts(1);
    for (const std::int64_t count : shape_.counts(2)) x_counts_.push_back(static_cast<float>(count));
    x_counts_.resize(x_counts_.size() + 16, 1.0f);  // vectors read past the end
    for (const float count : x_counts_) x_inverses_.push_back(1 / count);
  }

  Status run(const RunArguments& arguments) const override {
    const std::int64_t rows = shape_.planes() * shape_.out[0] * shape_.out[1];
    const std::int64_t scratch = pool_scratch_floats(shape_);
    const std::int64_t window = shape_.in[2] * shape_.kernel[0] * shape_.kernel[1] + shape_.out[2] * shape_.kernel[2];
    constexpr std::int64_t task_work = 1 << 15;
    const std::int64_t step = std::max<std::int64_t>(task_work / window, 1);
    run_in_slots((rows + step - 1) / step, 1, threads_, [&](std::int64_t slot, std::int64_t i) {
      PoolRows work;
      work.shape = &shape_;
      work.in = arguments.inputs[0]->as<const std::byte>();
      work.out = arguments.outputs[0]->as<std::byte>();
      work.begin = i * step;
      work.end = std::min(rows, work.begin + step);
      work.z_counts = z_counts_.data();
      work.y_counts = y_counts_.data();
      work.x_counts = x_counts_.data();
      work.x_inverses = x_inverses_.data();
      work.scratch = static_cast<float*>(arguments.workspace) + slot * scratch;
      if (threes_) return run_pool_threes(work, in_, out_);
      run_pool_rows(work, in_, out_);
    });
    return {};
  }

 private:
  PoolShape shape_;
  bool threes_;
  int threads_;
  DataType in_, out_;
  std::vector<std::int64_t> z_counts_, y_counts_;
  std::vector<float> x_counts_, x_inverses_;
};

/// Tensors that are contiguous anyhow, as those of one channel, are left to the rows.
bool is_by_pixels(const Problem& problem, const PoolShape& shape) {
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  if (in.contiguous && out.contiguous) return false;
  return shape.channels > 1 && in.strides[1] == 1 && out.strides[1] == 1;
}

PixelSteps pixel_steps(const TensorSpec& spec) {
  const std::size_t rank = spec.strides.size();
  return {spec.strides[0], rank == 5 ? spec.strides[2] : 0, spec.strides[rank - 2], spec.strides[rank - 1]};
}

/// Where the channels are last.
class PixelPlan final : public Plan {
 public:
  explicit PixelPlan(const Problem& problem)
      : shape_(pool_shape(problem)),
        threads_(pool_threads(problem, shape_)),
        in_(problem.inputs[0].dtype),
        out_(problem.outputs[0].dtype),
        in_steps_(pixel_steps(problem.inputs[0])),
        out_steps_(pixel_steps(problem.outputs[0])) {
    for (std::size_t i = 0; i < 3 && shape_.average; ++i) counts_[i] = shape_.counts(i);
  }

  Status run(const RunArguments& arguments) const override {
    const std::int64_t rows = shape_.batch * shape_.out[0] * shape_.out[1];
    const std::int64_t taps = shape_.kernel[0] * shape_.kernel[1] * shape_.kernel[2];
    constexpr std::int64_t task_work = 1 << 15;
    const std::int64_t step = task_work / std::max<std::int64_t>(shape_.out[2] * shape_.channels * taps, 1) + 1;
    parallel_for(rows, step, threads_, [&](std::int64_t begin, std::int64_t end) {
      run_pool_pixels(
          {&shape_, in_steps_, out_steps_, arguments.inputs[0]->as<const std::byte>(),
           arguments.outputs[0]->as<std::byte>(), begin, end, counts_[0].data(), counts_[1].data(), counts_[2].data()},
          in_, out_);
    });
    return {};
  }

 private:
  PoolShape shape_;
  int threads_;
  DataType in_, out_;
  PixelSteps in_steps_, out_steps_;
  std::array<std::vector<std::int64_t>, 3> counts_;
};

}  // namespace

Verdict supports_pool_simd(const Problem& problem, const DeviceProfile&) {
  const PoolShape shape = pool_shape(problem);
  const bool contiguous = problem.inputs[0].contiguous && problem.outputs[0].contiguous;
  if (!contiguous && !is_by_pixels(problem, shape)) {
    return Verdict::no("input and output are neither both contiguous nor both with channels last");
  }
  constexpr std::int64_t most = 1024;  // the scratch for a vector of outputs is sixteen strides long
  std::int64_t largest = 0;
  for (std::size_t i = 0; i < 3; ++i)
    largest = std::max({largest, shape.stride[i], shape.dilation[i], shape.kernel[i]});
  return is_at_most("the largest of kernel size, stride and dilation", largest, most);
}

std::unique_ptr<const Plan> prepare_pool_simd(const Problem& problem, const PrepareContext&) {
  if (is_by_pixels(problem, pool_shape(problem))) return std::make_unique<PixelPlan>(problem);
  return std::make_unique<SimdPlan>(problem);
}

std::uint64_t workspace_pool_simd(const Problem& problem, const DeviceProfile&) {
  const PoolShape shape = pool_shape(problem);
  if (is_by_pixels(problem, shape)) return 0;
  return static_cast<std::uint64_t>(pool_threads(problem, shape) * pool_scratch_floats(shape)) * sizeof(float);
}

}  // namespace xpuruntime::cpu
