#include <algorithm>
#include <utility>

#include "core/infer.h"

namespace xpuruntime {
namespace {

// One operand of matmul: the last two dims after its flag, and the batch dims before them.
struct Operand {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Dims batch = {};
  bool vector = false;
};

Operand operand(const Call& call, std::size_t input, std::string_view flag) {
  call.need_numeric(input);
  const Dims& shape = call.shape(input);
  const bool transposed = call.attributes().boolean(flag);
  if (shape.empty()) call.refuse("a tensor without dims has no rows; reshape it or use mul");
  if (shape.size() == 1) {
    if (transposed) call.refuse(std::string(flag) + " of a vector means nothing; leave the flag out");
    // A vector is a row on the left and a column on the right; that dim is dropped from the result.
    return input == 0 ? Operand{1, shape[0], {}, true} : Operand{shape[0], 1, {}, true};
  }
  Operand result{shape[shape.size() - 2], shape.back(), Dims(std::span(shape.data(), shape.size() - 2)), false};
  if (transposed) std::swap(result.rows, result.columns);
  return result;
}

Dims product_shape(const Dims& batch, const Operand& a, const Operand& b) {
  std::int64_t extents[max_rank + 2] = {};
  std::size_t size = batch.size();
  std::copy(batch.begin(), batch.end(), extents);
  if (!a.vector) extents[size++] = a.rows;
  if (!b.vector) extents[size++] = b.columns;
  return Dims(std::span<const std::int64_t>(extents, size));
}

void check_attention_shapes(const Call& call) {
  const Dims& q = call.shape(0);
  const Dims& k = call.shape(1);
  const Dims& v = call.shape(2);
  if (k[0] != q[0] || v[0] != q[0]) call.refuse("the batch extents differ; make them equal");
  if (k[3] != q[3]) call.refuse("query and key have heads of different size; make their last extents equal");
  if (v[1] != k[1] || v[2] != k[2]) call.refuse("key and value differ in heads or length; make them equal");
  if (k[1] == 0 || q[1] % k[1] != 0) {
    call.refuse("the " + std::to_string(q[1]) + " query heads are no multiple of the " + std::to_string(k[1]) +
                " key heads; repeat or drop heads");
  }
  if (k[2] == 0) call.refuse("there are no keys to attend to; give a key length of 1 or more");
}

void check_mask(const Call& call) {
  if (call[3].dtype != DataType::boolean) call.need_floating(3);
  const Dims scores = {call.shape(0)[0], call.shape(0)[1], call.shape(0)[2], call.shape(1)[2]};
  if (call.broadcast(call.shape(3), scores) != scores) {
    call.refuse("the mask " + to_string(call.shape(3)) + " is larger than the scores " + to_string(scores) +
                "; make it broadcast to them");
  }
}

}  // namespace

std::vector<TensorSpec> infer_matmul(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  const Operand a = operand(call, 0, "transpose_a");
  const Operand b = operand(call, 1, "transpose_b");
  if (a.columns != b.rows) {
    call.refuse("the inner extents " + std::to_string(a.columns) + " and " + std::to_string(b.rows) +
                " differ; make them equal or transpose one input");
  }
  return {make_spec(product_dtype(inputs), product_shape(call.broadcast(a.batch, b.batch), a, b))};
}

std::vector<TensorSpec> infer_linear(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  for (std::size_t i = 0; i < call.size(); ++i) call.need_numeric(i);
  call.need_rank(1, 2, "[out_features, in_features]");
  const Dims& weight = call.shape(1);
  if (call.shape(0).empty() || call.shape(0).back() != weight[1]) {
    call.refuse("the last extent of the input is not the " + std::to_string(weight[1]) +
                " features that the weight [out, in] takes; reshape the input or transpose the weight");
  }
  if (call.size() == 3) call.need_shape(2, {weight[0]}, "bias");
  Dims shape = call.shape(0);
  shape[shape.size() - 1] = weight[0];
  const DataType dtype = product_dtype(inputs);
  const std::string_view activation = attributes.choice("activation");
  if (!is_floating(dtype) && activation != "none" && activation != "relu") {
    call.refuse(std::string(activation) + " of integers is not integer; leave the activation out or cast to f32");
  }
  return {make_spec(dtype, shape)};
}

std::vector<TensorSpec> infer_attention(std::span<const TensorSpec> inputs, const Attributes& attributes) {
  const Call call(inputs, attributes);
  for (std::size_t i = 0; i < 3; ++i) {
    call.need_floating(i);
    call.need_rank(i, 4, "[batch, heads, length, head_size]");
  }
  check_attention_shapes(call);
  if (call.size() == 4) check_mask(call);
  const double scale = attributes.real("scale");
  if (scale == 0 && call.shape(0)[3] == 0) call.refuse("heads of size 0 have no 1/sqrt(head size); give a scale");
  const Dims shape = {call.shape(0)[0], call.shape(0)[1], call.shape(0)[2], call.shape(2)[3]};
  return {make_spec(promote(inputs.first(3)), shape)};
}

}  // namespace xpuruntime
