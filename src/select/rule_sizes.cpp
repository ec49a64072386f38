#include "select/rule_sizes.h"

#include <algorithm>

#include "core/matmul_shape.h"

namespace xpuruntime {
namespace {

const Dims& shape_of(const Problem& problem, std::size_t input) { return problem.inputs[input].shape; }

template <std::size_t input, std::size_t dim>
Fact extent(const Problem& problem) {
  return shape_of(problem, input)[dim];
}

Fact tail(const Dims& dims, std::size_t from) { return std::vector<std::int64_t>(dims.begin() + from, dims.end()); }

// ---- products ----

Fact rows_of_linear(const Problem& problem) {
  const Dims& shape = shape_of(problem, 0);
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

Fact one(const Problem&) { return std::int64_t{1}; }
Fact matmul_m(const Problem& problem) { return matmul_shape(problem).m; }
Fact matmul_n(const Problem& problem) { return matmul_shape(problem).n; }
Fact matmul_k(const Problem& problem) { return matmul_shape(problem).k; }
Fact matmul_batch(const Problem& problem) { return matmul_shape(problem).batch_count; }

// ---- windows ----

Fact image(const Problem& problem) { return tail(shape_of(problem, 0), 2); }
Fact kernel(const Problem& problem) { return tail(shape_of(problem, 1), 2); }
Fact output_image(const Problem& problem) { return tail(problem.outputs[0].shape, 2); }

// ---- attention ----

Fact masked(const Problem& problem) { return problem.inputs.size() > 3; }

// ---- rows that are reduced ----

std::int64_t elements(const Problem& problem) { return element_count(problem.inputs[0]); }

std::int64_t columns_of(const Problem& problem) {
  const Dims& shape = shape_of(problem, 0);
  std::int64_t columns = 1;
  if (problem.op == OpId::softmax || problem.op == OpId::log_softmax) {
    const std::int64_t dim = problem.attributes.integer("dim");
    const auto rank = static_cast<std::int64_t>(shape.size());
    return shape[static_cast<std::size_t>(dim < 0 ? dim + rank : dim)];
  }
  const std::size_t count =
      problem.op == OpId::layer_norm ? static_cast<std::size_t>(problem.attributes.integer("normalized_rank")) : 1;
  for (std::size_t i = shape.size() - std::min(count, shape.size()); i < shape.size(); ++i) columns *= shape[i];
  return columns;
}

Fact columns(const Problem& problem) { return columns_of(problem); }
Fact rows(const Problem& problem) {
  const std::int64_t width = columns_of(problem);
  return width == 0 ? std::int64_t{0} : elements(problem) / width;
}

using Id = OpId;
constexpr auto number = TermKind::integer;
constexpr auto flag = TermKind::boolean;
constexpr auto list = TermKind::integers;

// The words that docs/policies.md lists; what has none is read as inputs.N.shape.K.
constexpr SizeTerm table[] = {
    {Id::matmul, "m", number, 0, matmul_m, "rows of the result"},
    {Id::matmul, "n", number, 0, matmul_n, "columns of the result"},
    {Id::matmul, "k", number, 0, matmul_k, "terms of each sum"},
    {Id::matmul, "batch", number, 0, matmul_batch, "products, 1 without batch dims"},
    {Id::linear, "m", number, 0, rows_of_linear, "rows of the input: the product of all extents but the last"},
    {Id::linear, "n", number, 0, extent<1, 0>, "features that come out"},
    {Id::linear, "k", number, 0, extent<1, 1>, "features that go in"},
    {Id::linear, "batch", number, 0, one, "always 1: leading extents are rows"},

    {Id::conv2d, "batch", number, 0, extent<0, 0>, "images"},
    {Id::conv2d, "in_channels", number, 0, extent<0, 1>, "channels that go in"},
    {Id::conv2d, "out_channels", number, 0, extent<1, 0>, "channels that come out"},
    {Id::conv2d, "group_channels", number, 0, extent<1, 1>, "input channels of one group; 1: depthwise"},
    {Id::conv2d, "kernel", list, 2, kernel, "height and width of the filter"},
    {Id::conv2d, "image", list, 2, image, "height and width of the input"},
    {Id::conv2d, "output", list, 2, output_image, "height and width of the output"},
    {Id::conv3d, "batch", number, 0, extent<0, 0>, "volumes"},
    {Id::conv3d, "in_channels", number, 0, extent<0, 1>, "channels that go in"},
    {Id::conv3d, "out_channels", number, 0, extent<1, 0>, "channels that come out"},
    {Id::conv3d, "group_channels", number, 0, extent<1, 1>, "input channels of one group; 1: depthwise"},
    {Id::conv3d, "kernel", list, 3, kernel, "depth, height and width of the filter"},
    {Id::conv3d, "image", list, 3, image, "depth, height and width of the input"},
    {Id::conv3d, "output", list, 3, output_image, "depth, height and width of the output"},

    {Id::attention, "batch", number, 0, extent<0, 0>, "sequences"},
    {Id::attention, "heads", number, 0, extent<0, 1>, "query heads"},
    {Id::attention, "key_heads", number, 0, extent<1, 1>, "key and value heads"},
    {Id::attention, "queries", number, 0, extent<0, 2>, "length of the query"},
    {Id::attention, "keys", number, 0, extent<1, 2>, "length of key and value"},
    {Id::attention, "head_dim", number, 0, extent<0, 3>, "last extent of query and key"},
    {Id::attention, "value_dim", number, 0, extent<2, 3>, "last extent of the value"},
    {Id::attention, "masked", flag, 0, masked, "whether a mask is given"},

    {Id::max_pool2d, "image", list, 2, image, "height and width of the input"},
    {Id::max_pool2d, "output", list, 2, output_image, "height and width of the output"},
    {Id::max_pool3d, "image", list, 3, image, "depth, height and width of the input"},
    {Id::max_pool3d, "output", list, 3, output_image, "depth, height and width of the output"},
    {Id::avg_pool2d, "image", list, 2, image, "height and width of the input"},
    {Id::avg_pool2d, "output", list, 2, output_image, "height and width of the output"},
    {Id::avg_pool3d, "image", list, 3, image, "depth, height and width of the input"},
    {Id::avg_pool3d, "output", list, 3, output_image, "depth, height and width of the output"},

    {Id::softmax, "rows", number, 0, rows, "rows that are normalised"},
    {Id::softmax, "columns", number, 0, columns, "elements of a row: the extent of dim"},
    {Id::log_softmax, "rows", number, 0, rows, "rows that are normalised"},
    {Id::log_softmax, "columns", number, 0, columns, "elements of a row: the extent of dim"},
    {Id::layer_norm, "rows", number, 0, rows, "rows that are normalised"},
    {Id::layer_norm, "columns", number, 0, columns, "elements of a row: the last normalized_rank extents"},
    {Id::rms_norm, "rows", number, 0, rows, "rows that are normalised"},
    {Id::rms_norm, "columns", number, 0, columns, "elements of a row: the last extent"},
};

}  // namespace

std::span<const SizeTerm> size_terms() { return table; }

}  // namespace xpuruntime
