#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "core/attention_inputs.h"
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
    if (transposed) call.refuse(std::string(flag) + " does not apply to a vector; leave the flag out");
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

/// Scales stand for a whole matrix, or for each of its rows or columns.
void check_scale(const ForwardCall& call, std::size_t input, std::int64_t count, std::string_view lines) {
  if (!call.has(input)) return;
  const Dims& shape = call.shape(input);
  const bool fits = shape.empty() || shape == Dims{1} || shape == Dims{count};
  if (fits && call[input].dtype == DataType::float32) return;
  const std::string name(op_info(OpId::matmul).inputs[input].name);
  call.refuse(name + " is " + to_string(call[input]) + "; make it f32[], f32[1] or f32[" + std::to_string(count) +
              "] for the " + std::string(lines));
}

void check_whole(const ForwardCall& call, std::string_view attribute) {
  const double value = call.attributes().real(attribute);
  if (value == std::trunc(value) && std::fabs(value) <= 0x1p53) return;
  call.refuse(std::string(attribute) +
              " is not a whole number up to 2^53 and the result is integer; give one, or cast to f32");
}

/// What `c` and the scales make of the dtype of the sums.
DataType scaled_dtype(const ForwardCall& call, DataType sums, const Dims& shape) {
  constexpr std::size_t c = 2;
  const bool scaled = call.has(3) || call.has(4) || (call.has(c) && is_floating(call[c].dtype));
  if (!call.has(c) && !call.attributes().is_default("beta")) call.refuse("beta is given without c; give c too");
  DataType dtype = scaled && !is_floating(sums) ? DataType::float32 : sums;
  if (call.has(c)) {
    call.need_numeric(c);
    if (call.broadcast(call.shape(c), shape) != shape) {
      call.refuse("c is " + to_string(call.shape(c)) + "; make it broadcast to the result " + to_string(shape));
    }
    dtype = promote(std::array{make_spec(dtype, {}), call[c]});
  }
  if (is_floating(dtype)) return dtype;
  check_whole(call, "alpha");
  check_whole(call, "beta");
  return dtype;
}

void check_attention_shapes(const ForwardCall& call) {
  const bool paged = call.has(attention_page_table);
  const std::size_t heads = paged ? 2 : 1, length = paged ? 1 : 2;
  const Dims& q = call.shape(0);
  const Dims& k = call.shape(1);
  const Dims& v = call.shape(2);
  if ((!paged && k[0] != q[0]) || v[0] != k[0]) {
    call.refuse(paged ? "key and value differ in pages; make them equal" : "the batch extents differ; make them equal");
  }
  if (k[3] != q[3]) call.refuse("query and key have heads of different size; make their last extents equal");
  if (v[1] != k[1] || v[2] != k[2]) call.refuse("key and value differ in heads or length; make them equal");
  if (k[heads] == 0 || q[1] % k[heads] != 0) {
    call.refuse("the " + std::to_string(q[1]) + " query heads are not a multiple of the " + std::to_string(k[heads]) +
                " key heads; repeat or drop heads");
  }
  if (k[length] == 0) call.refuse("there are no keys to attend to; give a key length of 1 or more");
}

void check_sequences(const ForwardCall& call) {
  const std::int64_t batch = call.shape(0)[0];
  if (call.has(attention_lengths)) {
    call.need_index(attention_lengths);
    call.need_shape(attention_lengths, {batch}, "list of lengths");
  }
  if (!call.has(attention_page_table)) return;
  const TensorSpec& table = call[attention_page_table];
  if (table.dtype == DataType::int32 && table.shape.size() == 2 && table.shape[0] == batch && table.shape[1] > 0)
    return;
  call.refuse("the page table is " + to_string(table) + "; make it i32[" + std::to_string(batch) +
              ",pages of a sequence]");
}

void check_mask(const ForwardCall& call) {
  if (call[3].dtype != DataType::boolean) call.need_floating(3);
  const Dims scores = {call.shape(0)[0], call.shape(0)[1], call.shape(0)[2], attention_keys(call.inputs())};
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
  const Dims shape = product_shape(call.broadcast(a.batch, b.batch), a, b);
  check_scale(call, 3, a.rows, "rows of the result");
  check_scale(call, 4, b.columns, "columns of the result");
  return {make_spec(scaled_dtype(call, product_dtype(inputs.first(2)), shape), shape)};
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
    const bool pages = i > 0 && call.has(attention_page_table);
    call.need_rank(i, 4, pages ? "[pages, page_size, heads, head_size]" : "[batch, heads, length, head_size]");
  }
  check_sequences(call);
  check_attention_shapes(call);
  if (call.has(attention_mask)) check_mask(call);
  if (!attributes.boolean("causal") && !attributes.is_default("causal_align")) {
    call.refuse("causal_align is given without causal; set causal (in Python: is_causal) too");
  }
  const double scale = attributes.real("scale");
  if (scale == 0 && call.shape(0)[3] == 0) call.refuse("heads of size 0 have no 1/sqrt(head size); give a scale");
  const Dims shape = {call.shape(0)[0], call.shape(0)[1], call.shape(0)[2], call.shape(2)[3]};
  Specs outputs = {make_spec(promote(inputs.first(3)), shape)};
  if (attributes.boolean("lse")) outputs.push_back(make_spec(DataType::float32, {shape[0], shape[1], shape[2]}));
  return outputs;
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
Sizes key_heads(const Problem& problem) {
  return {problem.inputs[1].shape[has_input(problem.inputs, attention_page_table) ? 2 : 1]};
}
Sizes keys(const Problem& problem) { return {attention_keys(problem.inputs)}; }
Sizes masked(const Problem& problem) { return {has_input(problem.inputs, attention_mask) ? 1 : 0}; }

constexpr InputSpec scale_input(std::string_view name) {
  return {.name = name,
          .optional = true,
          .values = InputValues::positive,
          .gradient = false,
          .follows_precision = false,
          .opt_in = true};
}
constexpr InputSpec matmul_inputs[] = {{.name = "input"},
                                       {.name = "other"},
                                       {.name = "c", .optional = true, .opt_in = true},
                                       scale_input("scale_a"),
                                       scale_input("scale_b")};
constexpr AttributeSpec matmul_attributes[] = {boolean("transpose_a"), boolean("transpose_b"), opt_in(real("alpha", 1)),
                                               opt_in(real("beta", 1, "of `c`"))};
constexpr SizeSpec matmul_sizes[] = {
    size("m", matmul_m, "rows of the result", varies), size("n", matmul_n, "columns of the result"),
    size("k", matmul_k, "terms of each sum"), size("batch", matmul_batch, "products, 1 without batch dims", varies)};

constexpr InputSpec linear_inputs[] = {{.name = "input"}, {.name = "weight"}, {.name = "bias", .optional = true}};
constexpr AttributeSpec linear_attributes[] = {choice("activation", "none|relu|gelu|silu")};
constexpr SizeSpec linear_sizes[] = {
    size("m", rows_of_linear, "rows of the input: the product of all extents but the last", varies),
    size("n", extent<1, 0>, "features that come out"), size("k", extent<1, 1>, "features that go in"),
    size("batch", one, "always 1: leading extents are rows")};

std::int64_t lengths_bound(const Problem& problem) { return attention_keys(problem.inputs) + 1; }
std::int64_t pages_bound(const Problem& problem) { return problem.inputs[1].shape[0]; }

constexpr InputSpec sequence_input(std::string_view name, std::int64_t (*bound)(const Problem&)) {
  return {.name = name,
          .optional = true,
          .values = InputValues::index,
          .gradient = false,
          .follows_precision = false,
          .opt_in = true,
          .bound = bound};
}
constexpr InputSpec attention_inputs[] = {
    {.name = "query"},
    {.name = "key"},
    {.name = "value"},
    {.name = "attn_mask", .optional = true, .gradient = false, .follows_precision = false},
    sequence_input("lengths", lengths_bound),
    sequence_input("page_table", pages_bound)};
constexpr AttributeSpec attention_attributes[] = {
    {.name = "causal", .kind = AttributeKind::boolean, .python_name = "is_causal"},
    real("scale", 0, "0: one over the root of the head size"),
    opt_in(choice("causal_align", "top_left|bottom_right")),
    opt_in(boolean("lse"))};
constexpr SizeSpec attention_sizes[] = {
    size("batch", extent<0, 0>, "sequences", varies),
    size("heads", extent<0, 1>, "query heads"),
    size("key_heads", key_heads, "key and value heads"),
    size("queries", extent<0, 2>, "length of the query", varies),
    size("keys", keys, "length of key and value", varies),
    size("head_dim", extent<0, 3>, "last extent of query and key"),
    size("value_dim", extent<2, 3>, "last extent of the value"),
    {.name = "masked", .kind = AttributeKind::boolean, .read = masked, .summary = "whether a mask is given"}};

constexpr OpInfo rows[] = {
    {.id = Id::matmul,
     .name = "matmul",
     .aliases = "matrix_multiply|gemm|mm|bmm",
     .category = Kind::matrix,
     .summary = "Multiplies two matrices, or two batches of them that broadcast: "
                "alpha * (a * scale_a) @ (b * scale_b) + beta * c.",
     .inputs = matmul_inputs,
     .attributes = matmul_attributes,
     .infer = infer_matmul,
     .sizes = matmul_sizes,
     .rounding = Rounding::products,
     .autocast = lower,
     .autocast_names = "matmul|matrix_multiply",
     .parameters = "input, other, c, *, alpha, beta, scale_a, scale_b, transpose_a, transpose_b"},
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
     .parameters = "query, key, value, attn_mask, dropout_p: float = 0.0, is_causal, scale=None, *, lengths, "
                   "page_table, causal_align, lse",
     .functions = "scaled_dot_product_attention"},
};

}  // namespace

std::span<const OpInfo> matrix() { return rows; }

}  // namespace xpuruntime::op_rows
