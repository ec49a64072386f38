#include "core/infer.h"

namespace xpuruntime {
namespace {

// A bit for each dim that is reduced.
unsigned reduced_dims(const Call& call) {
  const std::size_t rank = call.shape(0).size();
  const std::vector<std::int64_t> dims = call.attributes().list("dim");
  if (dims.empty()) return (1U << rank) - 1;
  unsigned reduced = 0;
  for (const std::int64_t dim : dims) {
    const unsigned bit = 1U << call.axis(dim, rank);
    if ((reduced & bit) != 0) call.refuse("dim " + std::to_string(dim) + " is reduced twice; name it once");
    reduced |= bit;
  }
  return reduced;
}

// Sums of integers are 64 bits wide, as they grow past their parts.
DataType reduced_dtype(const Call& call) {
  const OpId op = call.attributes().op();
  call.need_numeric(0);
  if (op == OpId::reduce_mean) call.need_floating(0);
  const bool widens = op == OpId::reduce_sum && !is_floating(call[0].dtype);
  return widens ? DataType::int64 : call[0].dtype;
}

void check_reduction(const Call& call, const Dims& none_shape) {
  if (call.attributes().choice("reduction") == "batchmean" && none_shape.empty()) {
    call.refuse("a tensor without dims has no batch for batchmean; use mean");
  }
}

Dims loss_shape(const Call& call, const Dims& none_shape) {
  check_reduction(call, none_shape);
  return call.attributes().choice("reduction") == "none" ? none_shape : Dims{};
}

// The scores without their class dim: one target for each.
Dims target_shape(const Dims& scores) {
  if (scores.size() == 1) return {};
  std::int64_t extents[max_rank] = {scores[0]};
  for (std::size_t i = 2; i < scores.size(); ++i) extents[i - 1] = scores[i];
  return Dims(std::span<const std::int64_t>(extents, scores.size() - 1));
}

}  // namespace

std::vector<TensorSpec> infer_reduce(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  const DataType dtype = reduced_dtype(call);
  const unsigned reduced = reduced_dims(call);
  const bool keep = attributes.boolean("keepdim");
  const bool needs_elements = attributes.op() == OpId::reduce_max || attributes.op() == OpId::reduce_min;
  std::int64_t extents[max_rank] = {};
  std::size_t size = 0;
  for (std::size_t i = 0; i < call.shape(0).size(); ++i) {
    const bool gone = (reduced >> i & 1) != 0;
    if (gone && needs_elements && call.shape(0)[i] == 0) {
      call.refuse("dim " + std::to_string(i) + " has no elements to choose from; reduce a tensor that is not empty");
    }
    if (!gone || keep) extents[size++] = gone ? 1 : call.shape(0)[i];
  }
  return {make_spec(dtype, Dims(std::span<const std::int64_t>(extents, size)))};
}

// Scores [classes] or [batch, classes, ...], targets, and optionally a weight for each class.
std::vector<TensorSpec> infer_class_loss(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  const Dims& scores = call.shape(0);
  call.need_floating(0);
  if (scores.empty()) call.refuse("the scores have no class dim; reshape them to [batch, classes]");
  const Dims targets = target_shape(scores);
  const bool cross_entropy = attributes.op() == OpId::cross_entropy;
  if (cross_entropy && is_floating(call[1].dtype)) {
    call.need_shape(1, scores, "target of probabilities");
  } else {
    call.need_index(1);
    call.need_shape(1, targets, "target");
  }
  if (call.size() == 3) {
    call.need_floating(2);
    call.need_shape(2, {scores[scores.size() == 1 ? 0 : 1]}, "class weight");
  }
  if (cross_entropy && (attributes.real("label_smoothing") < 0 || attributes.real("label_smoothing") > 1)) {
    call.refuse("label_smoothing is outside; give 0 to 1");
  }
  return {make_spec(call[0].dtype, loss_shape(call, targets))};
}

std::vector<TensorSpec> infer_pointwise_loss(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  call.need_floating(0);
  // Counts may be integers; logarithms of probabilities may not.
  if (attributes.op() == OpId::kl_div) call.need_floating(1);
  call.need_numeric(1);
  const Dims shape = call.broadcast(call.shape(0), call.shape(1));
  return {make_spec(promote(inputs), loss_shape(call, shape))};
}

}  // namespace xpuruntime
