#include "tune/slices.h"

#include <algorithm>
#include <cmath>

namespace xpuruntime {
namespace {

using Place = FreeDimension::Place;

/// Rows of the first factor, columns of the second; leading dimensions may broadcast and are left alone.
std::vector<FreeDimension> of_matmul(const Problem& problem) {
  std::vector<FreeDimension> found;
  const Dims& a = problem.inputs[0].shape;
  const Dims& b = problem.inputs[1].shape;
  const Dims& out = problem.outputs[0].shape;
  if (a.size() < 2 || b.size() < 2 || out.size() < 2) return found;
  const std::size_t row_of_a = a.size() - (problem.attributes.boolean("transpose_a") ? 1 : 2);
  const std::size_t column_of_b = b.size() - (problem.attributes.boolean("transpose_b") ? 2 : 1);
  found.push_back({a[row_of_a], {{0, row_of_a}}, {{0, out.size() - 2}}});
  found.push_back({b[column_of_b], {{1, column_of_b}}, {{0, out.size() - 1}}});
  return found;
}

/// Outputs of weights [out, ...] with a bias [out], if there is one.
FreeDimension of_weights(const Problem& problem, std::size_t output_dim) {
  FreeDimension found{problem.inputs[1].shape[0], {{1, 0}}, {{0, output_dim}}};
  if (problem.inputs.size() > 2) found.inputs.push_back({2, 0});
  return found;
}

std::vector<FreeDimension> of_linear(const Problem& problem) {
  std::vector<FreeDimension> found;
  const Dims& in = problem.inputs[0].shape;
  for (std::size_t dim = 0; dim + 1 < in.size(); ++dim) found.push_back({in[dim], {{0, dim}}, {{0, dim}}});
  if (!in.empty()) found.push_back(of_weights(problem, in.size() - 1));
  return found;
}

std::vector<FreeDimension> of_convolution(const Problem& problem) {
  std::vector<FreeDimension> found = {{problem.inputs[0].shape[0], {{0, 0}}, {{0, 0}}}};
  if (problem.attributes.integer("groups") == 1) found.push_back(of_weights(problem, 1));
  return found;
}

/// Batches, and queries where no mask ties them to keys.
std::vector<FreeDimension> of_attention(const Problem& problem) {
  if (problem.inputs.size() != 3) return {};
  const Dims& query = problem.inputs[0].shape;
  std::vector<FreeDimension> found = {{query[0], {{0, 0}, {1, 0}, {2, 0}}, {{0, 0}}}};
  if (!problem.attributes.boolean("causal")) found.push_back({query[2], {{0, 2}}, {{0, 2}}});
  return found;
}

/// Every line along `dim` stands for itself.
std::vector<FreeDimension> of_softmax(const Problem& problem) {
  std::vector<FreeDimension> found;
  const Dims& shape = problem.inputs[0].shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t dim = problem.attributes.integer("dim");
  for (std::int64_t i = 0; i < rank; ++i) {
    const auto place = static_cast<std::size_t>(i);
    if (i != (dim < 0 ? dim + rank : dim)) found.push_back({shape[place], {{0, place}}, {{0, place}}});
  }
  return found;
}

Tensor cut(const Tensor& tensor, std::size_t dim, std::int64_t begin, std::int64_t count) {
  TensorSpec spec = tensor.spec();
  const auto skipped = static_cast<std::size_t>(begin * spec.strides[dim]) * size_of(spec.dtype);
  spec.shape[dim] = count;
  return Tensor(tensor.data(), make_spec(spec.dtype, spec.shape, spec.strides, 1), tensor.device(),
                tensor.byte_offset() + skipped, tensor.owner());
}

std::vector<Tensor> cut_all(std::vector<Tensor> tensors, const std::vector<Slice::Cut>& cuts,
                            std::vector<Place> FreeDimension::*places) {
  for (const Slice::Cut& each : cuts) {
    for (const Place& place : each.dimension.*places) {
      tensors[place.tensor] = cut(tensors[place.tensor], place.dim, each.begin, each.count);
    }
  }
  return tensors;
}

}  // namespace

std::vector<FreeDimension> free_dimensions(const Problem& problem) {
  if (problem.direction != Direction::forward || !opt_ins_of(problem).empty()) return {};
  switch (problem.op) {
    case OpId::matmul:
      return of_matmul(problem);
    case OpId::linear:
      return of_linear(problem);
    case OpId::conv2d:
    case OpId::conv3d:
      return of_convolution(problem);
    case OpId::attention:
      return of_attention(problem);
    case OpId::softmax:
    case OpId::log_softmax:
      return of_softmax(problem);
    default:
      return {};
  }
}

std::vector<Tensor> Slice::of_inputs(const std::vector<Tensor>& inputs) const {
  return cut_all(inputs, cuts, &FreeDimension::inputs);
}
std::vector<Tensor> Slice::of_outputs(const std::vector<Tensor>& outputs) const {
  return cut_all(outputs, cuts, &FreeDimension::outputs);
}

std::vector<Slice> slices_of(const Problem& problem, double share) {
  std::vector<FreeDimension> dimensions = free_dimensions(problem);
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const FreeDimension& a, const FreeDimension& b) { return a.extent > b.extent; });
  Slice first, last;
  for (const FreeDimension& dimension : dimensions) {
    if (share >= 1) break;
    const auto wanted = static_cast<std::int64_t>(std::floor(static_cast<double>(dimension.extent) * share));
    const std::int64_t count = std::max<std::int64_t>(wanted, 1);
    if (count >= dimension.extent) continue;
    share *= static_cast<double>(dimension.extent) / static_cast<double>(count);
    first.cuts.push_back({dimension, 0, count});
    last.cuts.push_back({dimension, dimension.extent - count, count});
  }
  if (first.cuts.empty()) return {first};
  return {first, last};
}

}  // namespace xpuruntime
