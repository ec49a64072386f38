#include "backends/cpu/attention/shape.h"

#include <cmath>
#include <limits>
#include <string>

#include "backends/cpu/attention/kernels.h"
#include "core/attention_inputs.h"
#include "xpuruntime/registry/refusals.h"

namespace xpuruntime::cpu {
namespace {

AttentionStrides strides_of(const TensorSpec& spec) {
  return {spec.strides[0], spec.strides[1], spec.strides[2], spec.strides[3]};
}

/// Of pages [pages, page_size, heads, head_size]: what a batch is elsewhere is a page.
AttentionStrides page_strides(const TensorSpec& spec) {
  return {spec.strides[0], spec.strides[2], spec.strides[1], spec.strides[3]};
}

AttentionStrides mask_strides(const TensorSpec& spec) {
  std::int64_t strides[4] = {};
  const std::size_t skipped = 4 - spec.shape.size();
  for (std::size_t i = 0; i < spec.shape.size(); ++i) strides[skipped + i] = spec.shape[i] == 1 ? 0 : spec.strides[i];
  return {strides[0], strides[1], strides[2], strides[3]};
}

/// What a class of problems leaves open. `input(i)` is the spec of input i.
template <class Input>
void set_keys(AttentionShape& shape, const Input& input) {
  const TensorSpec &k = input(1), &v = input(2);
  shape.keys = shape.paged ? input(attention_page_table).shape[1] * shape.page_size : k.shape[2];
  shape.k = shape.paged ? page_strides(k) : strides_of(k);
  shape.v = shape.paged ? page_strides(v) : strides_of(v);
  if (shape.has_mask) shape.mask = mask_strides(input(attention_mask));
}

}  // namespace

AttentionShape attention_shape(const Problem& problem) {
  const TensorSpec &q = problem.inputs[0], &k = problem.inputs[1], &v = problem.inputs[2], &out = problem.outputs[0];
  AttentionShape shape;
  shape.paged = has_input(problem.inputs, attention_page_table);
  shape.batch = q.shape[0];
  shape.heads = q.shape[1];
  shape.key_heads = k.shape[shape.paged ? 2 : 1];
  shape.group = shape.heads / shape.key_heads;
  shape.queries = q.shape[2];
  if (shape.paged) {
    shape.pages = k.shape[0];
    shape.page_size = k.shape[1];
  }
  shape.depth = q.shape[3];
  shape.width = v.shape[3];
  const double scale = problem.attributes.real("scale");
  shape.exact_scale = scale == 0 ? 1 / std::sqrt(static_cast<double>(shape.depth)) : scale;
  shape.scale = static_cast<float>(shape.exact_scale);
  shape.causal = problem.attributes.boolean("causal");
  shape.bottom_right = problem.attributes.choice("causal_align") == "bottom_right";
  shape.has_lse = problem.attributes.boolean("lse");
  shape.q_dtype = q.dtype;
  shape.k_dtype = k.dtype;
  shape.v_dtype = v.dtype;
  shape.out_dtype = out.dtype;
  shape.q = strides_of(q);
  shape.out = strides_of(out);
  if (shape.has_lse) {
    const Dims& strides = problem.outputs[1].strides;
    shape.lse = {strides[0], strides[1], strides[2]};
  }
  shape.has_mask = has_input(problem.inputs, attention_mask);
  if (shape.has_mask) shape.mask_dtype = problem.inputs[attention_mask].dtype;
  set_keys(shape, [&](std::size_t i) -> const TensorSpec& { return problem.inputs[i]; });
  return shape;
}

std::optional<Problem> attention_of_any_length(const Problem& problem) {
  Problem any = problem;
  const auto shorten = [&](std::size_t input, std::size_t dim) {
    TensorSpec& spec = any.inputs[input];
    spec.shape[dim] = 1;
    spec = make_spec(spec.dtype, spec.shape);
  };
  if (has_input(any.inputs, attention_page_table)) {
    shorten(attention_page_table, 1);
  } else {
    shorten(1, 2);
    shorten(2, 2);
  }
  if (has_input(any.inputs, attention_mask)) {
    TensorSpec& mask = any.inputs[attention_mask];
    mask = make_spec(mask.dtype, {1});
  }
  return any;
}

AttentionShape attention_shape(AttentionShape shape, const RunArguments& arguments) {
  set_keys(shape, [&](std::size_t i) -> const TensorSpec& { return arguments.inputs[i]->spec(); });
  return shape;
}

Sequences::Sequences(const AttentionShape& shape, const RunArguments& arguments) : shape_(shape) {
  const auto there = [&](std::size_t i) { return i < arguments.inputs.size() && arguments.inputs[i]->span() > 0; };
  if (there(attention_lengths)) {
    const Tensor& lengths = *arguments.inputs[attention_lengths];
    lengths_ = lengths.as<const std::byte>();
    load_length_ = integer_loader_of(lengths.dtype());
    length_stride_ = lengths.strides()[0];
  }
  if (there(attention_page_table)) {
    const Tensor& table = *arguments.inputs[attention_page_table];
    table_ = table.as<const std::int32_t>();
    table_row_ = table.strides()[0];
    page_step_ = table.strides()[1];
  }
}

Status Sequences::check() const {
  if (lengths_ == nullptr && table_ == nullptr) return {};
  for (std::int64_t b = 0; b < shape_.batch; ++b) {
    const std::int64_t keys = length(b);
    const std::string sequence = " of sequence " + std::to_string(b) + " is ";
    if (keys < 0 || keys > shape_.keys) {
      return Status(ErrorCode::invalid_argument, "the length" + sequence + std::to_string(keys) +
                                                     "; give one from 0 to " + std::to_string(shape_.keys));
    }
    for (std::int64_t i = 0; table_ != nullptr && i * shape_.page_size < keys; ++i) {
      const std::int32_t page = pages_of(b)[i * page_step_];
      if (page >= 0 && page < shape_.pages) continue;
      return Status(ErrorCode::invalid_argument, "page " + std::to_string(i) + sequence + std::to_string(page) +
                                                     ", and there are " + std::to_string(shape_.pages) +
                                                     " pages"
                                                     "; give the number of one of them");
    }
  }
  return {};
}

void store_lse(const AttentionShape& shape, const RunArguments& arguments, std::int64_t row_at, float highest,
               float weight) {
  if (!shape.has_lse) return;
  const double sum = std::log(static_cast<double>(weight));  // -infinity where no key took part
  const double most = weight == 0 ? 0 : static_cast<double>(highest) * static_cast<double>(shape.score_factor());
  arguments.outputs[1]->as<float>()[row_at] = static_cast<float>(most + sum);
}

Verdict supports_attention_rows(const Problem& problem) {
  for (std::size_t i = 0; i < 3; ++i) {
    const Verdict rows = has_contiguous_rows("input " + std::to_string(i), problem.inputs[i]);
    if (!rows.supported) return rows;
  }
  using Float = std::numeric_limits<float>;
  const double scale = std::fabs(problem.attributes.real("scale"));
  if (scale != 0 && (scale > static_cast<double>(Float::max()) || scale < static_cast<double>(Float::min()))) {
    return Verdict::no("the scale is outside the range of f32, which this kernel computes in");
  }
  if (problem.outputs.size() > 1) {
    if (problem.outputs[1].dtype != DataType::float32) return refuse_dtype("the lse", problem.outputs[1].dtype, "f32");
    if (problem.inputs[2].shape[3] == 0)
      return Verdict::no("values of size 0, and this kernel gives their lse with them");
  }
  return has_contiguous_rows("output 0", problem.outputs[0]);
}

int attention_threads(int most, const AttentionShape& shape) {
  // Products of numbers: about 20 us on one thread for the matrix kernels and for those bound by memory alike.
  constexpr double worth_a_thread = 400e3;
  const double work = static_cast<double>(shape.batch * shape.heads * shape.queries) * static_cast<double>(shape.keys) *
                      static_cast<double>(shape.depth + shape.width);
  return work < worth_a_thread ? 1 : most;
}

}  // namespace xpuruntime::cpu
