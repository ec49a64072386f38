#include "core/infer.h"

namespace xpuruntime {
namespace {

// The result has the input's dtype: scales and statistics are often kept wider than the data.
std::vector<TensorSpec> like_input(const Call& call) { return {make_spec(call[0].dtype, call.shape(0))}; }

void need_floats_and_eps(const Call& call) {
  for (std::size_t i = 0; i < call.size(); ++i) call.need_floating(i);
  if (call.attributes().real("eps") < 0) call.refuse("eps is negative; give 0 or more");
}

void check_batch_norm_rank(const Call& call) {
  const std::size_t rank = call.shape(0).size();
  switch (call.attributes().op()) {
    case OpId::batch_norm1d:
      if (rank != 2) call.need_rank(0, 3, "[batch, channels] or [batch, channels, length]");
      return;
    case OpId::batch_norm2d:
      return call.need_rank(0, 4, "[batch, channels, height, width]");
    default:
      return call.need_rank(0, 5, "[batch, channels, depth, height, width]");
  }
}

}  // namespace

// Inputs in PyTorch's order: x, running_mean, running_var, weight, bias. Training with running statistics also gives
// their new values.
std::vector<TensorSpec> infer_batch_norm(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  need_floats_and_eps(call);
  check_batch_norm_rank(call);
  if (call.size() == 2) call.refuse("running_mean stands without running_var; give both");
  if (call.size() == 1 && !attributes.boolean("training")) {
    call.refuse("there are no statistics to use; give running_mean and running_var, or set training");
  }
  constexpr std::string_view names[] = {"input", "running_mean", "running_var", "weight", "bias"};
  for (std::size_t i = 1; i < call.size(); ++i) call.need_shape(i, {call.shape(0)[1]}, names[i]);
  std::vector<TensorSpec> outputs = like_input(call);
  if (attributes.boolean("training") && call.size() > 2) {
    for (const std::size_t i : {1, 2}) outputs.push_back(make_spec(call[i].dtype, call.shape(i)));
  }
  return outputs;
}

std::vector<TensorSpec> infer_layer_norm(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  need_floats_and_eps(call);
  const Dims& shape = call.shape(0);
  const std::int64_t count = attributes.integer("normalized_rank");
  if (count < 1 || count > static_cast<std::int64_t>(shape.size())) {
    call.refuse("normalized_rank " + std::to_string(count) + " is not from 1 to the rank " +
                std::to_string(shape.size()) + "; give the number of last dims to normalize over");
  }
  const auto size = static_cast<std::size_t>(count);
  const Dims normalized(std::span(shape.end() - size, size));
  if (call.size() > 1) call.need_shape(1, normalized, "weight");
  if (call.size() > 2) call.need_shape(2, normalized, "bias");
  return like_input(call);
}

std::vector<TensorSpec> infer_rms_norm(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  need_floats_and_eps(call);
  call.axis(-1, call.shape(0).size());
  if (call.size() > 1) call.need_shape(1, {call.shape(0).back()}, "weight");
  return like_input(call);
}

std::vector<TensorSpec> infer_normalize(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  need_floats_and_eps(call);
  if (attributes.real("p") < 0) call.refuse("p is negative and gives no norm; give 0 or more");
  call.axis(attributes.integer("dim"), call.shape(0).size());
  return like_input(call);
}

std::vector<TensorSpec> infer_softmax(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  call.need_floating(0);
  call.axis(attributes.integer("dim"), call.shape(0).size());
  return like_input(call);
}

}  // namespace xpuruntime
