#include "backends/cpu/attention/shape.h"

#include <cmath>
#include <limits>
#include <string>

#include "backends/cpu/base/supports.h"
#include "backends/cpu/base/thread_pool.h"

namespace xpuruntime::cpu {
namespace {

AttentionStrides strides_of(const TensorSpec& spec) {
  return {spec.strides[0], spec.strides[1], spec.strides[2], spec.strides[3]};
}

AttentionStrides mask_strides(const TensorSpec& spec) {
  std::int64_t strides[4] = {};
  const std::size_t skipped = 4 - spec.shape.size();
  for (std::size_t i = 0; i < spec.shape.size(); ++i) strides[skipped + i] = spec.shape[i] == 1 ? 0 : spec.strides[i];
  return {strides[0], strides[1], strides[2], strides[3]};
}

Verdict check_row(const TensorSpec& spec, std::string_view name) {
  if (!is_fast_float(spec.dtype)) return refuse_dtype(name, spec.dtype, "f32, f16 and bf16");
  if (spec.shape[3] > 1 && spec.strides[3] != 1) {
    return Verdict::no("the rows of the " + std::string(name) + " have stride " + std::to_string(spec.strides[3]) +
                       ", and this kernel takes 1");
  }
  return Verdict::yes();
}

}  // namespace

AttentionShape attention_shape(const Problem& problem) {
  const TensorSpec &q = problem.inputs[0], &k = problem.inputs[1], &v = problem.inputs[2], &out = problem.outputs[0];
  AttentionShape shape;
  shape.batch = q.shape[0];
  shape.heads = q.shape[1];
  shape.key_heads = k.shape[1];
  shape.group = shape.heads / shape.key_heads;
  shape.queries = q.shape[2];
  shape.keys = k.shape[2];
  shape.depth = q.shape[3];
  shape.width = v.shape[3];
  const double scale = problem.attributes.real("scale");
  shape.exact_scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.depth)) : scale;
  shape.scale = static_cast<float>(shape.exact_scale);
  shape.causal = problem.attributes.boolean("causal");
  shape.q_dtype = q.dtype;
  shape.k_dtype = k.dtype;
  shape.v_dtype = v.dtype;
  shape.out_dtype = out.dtype;
  shape.q = strides_of(q);
  shape.k = strides_of(k);
  shape.v = strides_of(v);
  shape.out = strides_of(out);
  shape.has_mask = problem.inputs.size() == 4;
  if (shape.has_mask) {
    shape.mask_dtype = problem.inputs[3].dtype;
    shape.mask = mask_strides(problem.inputs[3]);
  }
  return shape;
}

Verdict supports_attention_floats(const Problem& problem) {
  if (const Verdict verdict = supports_aligned(problem, {}); !verdict.supported) return verdict;
  constexpr std::string_view names[] = {"query", "key", "value"};
  for (std::size_t i = 0; i < 3; ++i) {
    if (const Verdict verdict = check_row(problem.inputs[i], names[i]); !verdict.supported) return verdict;
  }
  if (std::fabs(problem.attributes.real("scale")) > static_cast<double>(std::numeric_limits<float>::max())) {
    return Verdict::no("the scale is past the range of f32, which this kernel computes in");
  }
  if (problem.inputs.size() == 4) {
    const DataType dtype = problem.inputs[3].dtype;
    if (dtype != DataType::boolean && !is_fast_float(dtype)) {
      return refuse_dtype("the mask", dtype, "bool, f32, f16 and bf16");
    }
  }
  return check_row(problem.outputs[0], "output");
}

int attention_threads(const Problem& problem, const AttentionShape& shape) {
  // Products of numbers: about 20 us on one thread for the matrix kernels and for those bound by memory alike.
  constexpr double worth_a_thread = 400e3;
  const double work = static_cast<double>(shape.batch * shape.heads * shape.queries) * static_cast<double>(shape.keys) *
                      static_cast<double>(shape.depth + shape.width);
  return work < worth_a_thread ? 1 : threads_for(problem);
}

}  // namespace xpuruntime::cpu
