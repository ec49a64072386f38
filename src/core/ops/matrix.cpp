#include <algorithm>
#include <utility>

#include "core/matmul_shape.h"
#include "core/ops/schema.h"

namespace xpuruntime::op_rows {
namespace {

// One operand of matmul: the last two dims after its flag, and the batch dims before them.
struct Operand {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  Dims batch = {};
  bool vector = false;
};

Operand operand(const ForwardCall& call, std::size_t input, std::string_view flag) {
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

void check_attention_shapes(const ForwardCall& call) {
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

void check_mask(const ForwardCall& call) {
  if (call[3].dtype != DataType::boolean) call.need_floating(3);
  const Dims scores = {call.shape(0)[0], call.shape(0)[1], call.shape(0)[2], call.shape(1)[2]};
  if (call.broadcast(call.shape(3), scores) != scores) {
    call.refuse("the mask " + to_string(call.shape(3)) + " is larger than the scores " + to_string(scores) +
                "; make it broadcast to them");
  }
}

Specs infer_matmul(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
  const Operand a = operand(call, 0, "transpose_a");
  const Operand b = operand(call, 1, "transpose_b");
  if (a.columns != b.rows) {
    call.refuse("the inner extents " + std::to_string(a.columns) + " and " + std::to_string(b.rows) +
                " differ; make them equal or transpose one input");
  }
  return {make_spec(product_dtype(inputs), product_shape(call.broadcast(a.batch, b.batch), a, b))};
}

Specs infer_linear(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
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

Specs infer_attention(Inputs inputs, const Attributes& attributes) {
  const ForwardCall call(inputs, attributes);
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

Sizes rows_of_linear(const Problem& problem) {
  const Dims& shape = problem.inputs[0].shape;
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return {rows};
}

Sizes one(const Problem&) { return {1}; }
Sizes matmul_m(const Problem& problem) { return {matmul_shape(problem).m}; }
Sizes matmul_n(const Problem& problem) { return {matmul_shape(problem).n}; }
Sizes matmul_k(const Problem& problem) { return {matmul_shape(problem).k}; }
Sizes matmul_batch(const Problem& problem) { return {matmul_shape(problem).batch_count}; }
Sizes masked(const Problem& problem) { return {problem.inputs.size() > 3 ? 1 : 0}; }

constexpr InputSpec matmul_inputs[] = {{.name = "input"}, {.name = "other"}};
constexpr AttributeSpec matmul_attributes[] = {boolean("transpose_a"), boolean("transpose_b")};
constexpr SizeSpec matmul_sizes[] = {
    size("m", matmul_m, "rows of the result", varies), size("n", matmul_n, "columns of the result"),
    size("k", matmul_k, "terms of each sum"), size("batch", matmul_batch, "products, 1 without batch dims", varies)};

constexpr InputSpec linear_inputs[] = {{.name = "input"}, {.name = "weight"}, {.name = "bias", .optional = true}};
constexpr AttributeSpec linear_attributes[] = {choice("activation", "none|relu|gelu|silu")};
constexpr SizeSpec linear_sizes[] = {
    size("m", rows_of_linear, "rows of the input: the product of all extents but the last", varies),
    size("n", extent<1, 0>, "features that come out"), size("k", extent<1, 1>, "features that go in"),
    size("batch", one, "always 1: leading extents are rows")};

constexpr InputSpec attention_inputs[] = {
    {.name = "query"},
    {.name = "key"},
    {.name = "value"},
    {.name = "attn_mask", .optional = true, .gradient = false, .follows_precision = false}};
constexpr AttributeSpec attention_attributes[] = {
    {.name = "causal", .kind = AttributeKind::boolean, .python_name = "is_causal"},
    real("scale", 0, "0: one over the root of the head size")};
constexpr SizeSpec attention_sizes[] = {
    size("batch", extent<0, 0>, "sequences", varies),
    size("heads", extent<0, 1>, "query heads"),
    size("key_heads", extent<1, 1>, "key and value heads"),
    size("queries", extent<0, 2>, "length of the query", varies),
    size("keys", extent<1, 2>, "length of key and value", varies),
    size("head_dim", extent<0, 3>, "last extent of query and key"),
    size("value_dim", extent<2, 3>, "last extent of the value"),
    {.name = "masked", .kind = AttributeKind::boolean, .read = masked, .summary = "whether a mask is given"}};

constexpr OpInfo rows[] = {
    {.id = Id::matmul,
     .name = "matmul",
     .aliases = "matrix_multiply|gemm|mm|bmm",
     .category = Kind::matrix,
     .summary = "Multiplies two matrices, or two batches of them that broadcast.",
     .inputs = matmul_inputs,
     .attributes = matmul_attributes,
     .infer = infer_matmul,
     .sizes = matmul_sizes,
     .rounding = Rounding::products,
     .autocast = lower,
     .autocast_names = "matmul|matrix_multiply",
     .parameters = "input, other, *, transpose_a, transpose_b"},
    {.id = Id::linear,
     .name = "linear",
     .aliases = "dense|fully_connected",
     .category = Kind::matrix,
     .summary = "Multiplies by a weight [out, in], adds the bias and applies the activation.",
     .inputs = linear_inputs,
     .attributes = linear_attributes,
     .infer = infer_linear,
     .sizes = linear_sizes,
     .rounding = Rounding::products,
     .autocast = lower,
     .parameters = "input, weight, bias, *, activation"},
    {.id = Id::attention,
     .name = "attention",
     .aliases = "sdpa|scaled_dot_product_attention",
     .category = Kind::matrix,
     .summary = "Weights the values by the softmax of the scaled products of queries and keys.",
     .inputs = attention_inputs,
     .attributes = attention_attributes,
     .infer = infer_attention,
     .sizes = attention_sizes,
     .sample = "T[1,4,64,64], T[1,4,64,64], T[1,4,64,64]",
     .rounding = Rounding::attention,
     .parameters = "query, key, value, attn_mask, dropout_p: float = 0.0, is_causal, scale=None",
     .functions = "scaled_dot_product_attention"},
};

}  // namespace

std::span<const OpInfo> matrix() { return rows; }

}  // namespace xpuruntime::op_rows
