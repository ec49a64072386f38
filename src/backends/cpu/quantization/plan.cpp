#include <algorithm>

#include "backends/cpu/base/elements.h"
#include "backends/cpu/base/thread_pool.h"
#include "backends/cpu/quantization/kernels.h"
#include "backends/cpu/quantization/layout.h"
#include "backends/cpu/quantization/rows.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

/// Without gaps, in any order of dims.
bool is_dense(const TensorSpec& spec) {
  return span_bytes(spec) == static_cast<std::uint64_t>(element_count(spec)) * size_of(spec.dtype);
}

Verdict supports_rows(const Problem& problem) {
  if (problem.attributes.integer("block_size") != 0) return Verdict::no("it takes one scale a slice, no blocks");
  const TensorSpec &in = problem.inputs[0], &out = problem.outputs[0];
  const bool one_order = in.strides == out.strides && is_dense(in);
  if (!QuantizedLayout(problem).by_slice && one_order) return Verdict::yes();
  return is_contiguous(problem);
}

class RowsPlan final : public Plan {
 public:
  RowsPlan(const Problem& problem, RunQuantizedRow (*find)(DataType, DataType, bool))
      : layout_(problem),
        count_(element_count(problem.inputs[0])),
        threads_(threads_for(problem)),
        each_(layout_.by_slice && layout_.inner == 1),
        run_row_(find(problem.inputs[0].dtype, problem.outputs[0].dtype, each_)),
        inputs_(problem.inputs) {
    in_bytes_ = static_cast<std::int64_t>(size_of(problem.inputs[0].dtype));
    out_bytes_ = static_cast<std::int64_t>(size_of(problem.outputs[0].dtype));
  }

  Status run(const RunArguments& arguments) const override {
    float* scales = static_cast<float*>(arguments.workspace);
    float* zeros = scales + layout_.slices;
    fill(arguments, scales, zeros);
    const std::int64_t length = each_ ? layout_.slices : layout_.inner;
    const auto* in = arguments.inputs[0]->as<const std::byte>();
    auto* out = arguments.outputs[0]->as<std::byte>();
    constexpr std::int64_t line = 64, grain = 32768;
    parallel_for((count_ + line - 1) / line, grain / line, threads_, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t at = begin * line, stop = std::min(end * line, count_); at < stop;) {
        const std::int64_t inside = at % length, n = std::min(length - inside, stop - at);
        const std::int64_t which = each_ ? inside : at / length % layout_.slices;
        run_row_({in + at * in_bytes_, out + at * out_bytes_, n, scales + which, zeros + which});
        at += n;
      }
    });
    return {};
  }

 private:
  void fill(const RunArguments& arguments, float* scales, float* zeros) const {
    const LoadElement load = loader_of(inputs_[1].dtype);
    const std::int64_t step = inputs_[1].shape.empty() ? 0 : inputs_[1].strides[0];
    for (std::int64_t i = 0; i < layout_.slices; ++i) {
      scales[i] = static_cast<float>(load(arguments.inputs[1]->as<const void>(), i * step));
      zeros[i] = 0;
    }
    if (inputs_.size() < 3) return;
    const LoadElement load_zero = loader_of(inputs_[2].dtype);
    const std::int64_t zero_step = inputs_[2].shape.empty() ? 0 : inputs_[2].strides[0];
    for (std::int64_t i = 0; i < layout_.slices; ++i) {
      zeros[i] = static_cast<float>(load_zero(arguments.inputs[2]->as<const void>(), i * zero_step));
    }
  }

  QuantizedLayout layout_;
  std::int64_t count_;
  int threads_;
  bool each_;
  RunQuantizedRow run_row_;
  std::vector<TensorSpec> inputs_;
  std::int64_t in_bytes_ = 0, out_bytes_ = 0;
};

}  // namespace

std::uint64_t workspace_quantized_rows(const Problem& problem, const DeviceProfile&) {
  return static_cast<std::uint64_t>(QuantizedLayout(problem).slices) * 2 * sizeof(float);
}

Verdict supports_quantize_simd(const Problem& problem, const DeviceProfile&) { return supports_rows(problem); }

Verdict supports_dequantize_simd(const Problem& problem, const DeviceProfile&) {
  if (problem.inputs[0].dtype == DataType::int32 && problem.inputs.size() > 2) {
    return Verdict::no("i32 less its zero point is more than a vector of f32 holds");
  }
  return supports_rows(problem);
}

std::unique_ptr<const Plan> prepare_quantize_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RowsPlan>(problem, find_quantize);
}

std::unique_ptr<const Plan> prepare_dequantize_simd(const Problem& problem, const PrepareContext&) {
  return std::make_unique<RowsPlan>(problem, find_dequantize);
}

}  // namespace xpuruntime::cpu
