#include <cmath>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

// Vectors become matrices with one row or column; the flags speak of the last two extents of matrices.
struct Matrix {
  const Values& values;
  Dims batch = {};
  std::int64_t rows = 1, columns = 1;  // after the flag
  bool transposed = false;

  Matrix(const Values& v, const TensorSpec& spec, bool left, bool flag) : values(v) {
    const Dims& shape = spec.shape;
    if (shape.size() == 1) {
      (left ? columns : rows) = shape[0];
      return;
    }
    transposed = flag;
    batch = Dims(std::span(shape.data(), shape.size() - 2));
    rows = shape[shape.size() - 2];
    columns = shape.back();
    if (flag) std::swap(rows, columns);
  }
  double at(std::int64_t matrix, std::int64_t row, std::int64_t column) const {
    const std::int64_t inside = transposed ? column * rows + row : row * columns + column;
    return values[static_cast<std::size_t>(matrix * rows * columns + inside)];
  }
  /// Which matrix belongs to a position of the joint batch.
  std::int64_t index(const Position& position, const Dims& joint) const {
    std::int64_t index = 0;
    for (std::size_t i = 0; i < batch.size(); ++i) {
      index = index * batch[i] + (batch[i] == 1 ? 0 : position[joint.size() - batch.size() + i]);
    }
    return index;
  }
};

// k products and k - 1 additions in any order, fused or not: one rounding more than a sum of k terms.
Approximate product(const Matrix& a, std::int64_t ma, std::int64_t i, const Matrix& b, std::int64_t mb,
                    std::int64_t j) {
  double sum = 0, size = 0;
  for (std::int64_t p = 0; p < a.columns; ++p) {
    const double term = a.at(ma, i, p) * b.at(mb, p, j);
    sum += term;
    size += std::fabs(term);
  }
  return {sum, (sum_units(static_cast<double>(a.columns)) + 1) * size};
}

// alpha * scale_a * scale_b of one element, and beta * c. Each factor and product is rounded once more, and so are sums
// of integers on their way to floats.
struct Affine {
  const Problem& problem;
  const std::vector<Values>& in;
  std::vector<Broadcast> c = {};

  Affine(const Problem& p, const std::vector<Values>& inputs) : problem(p), in(inputs) {
    if (has(2)) c.emplace_back(in[2], p.inputs[2].shape, p.outputs[0].shape);
  }
  bool has(std::size_t i) const { return i < in.size() && !in[i].empty(); }
  double scale(std::size_t i, std::int64_t line) const {
    if (!has(i)) return 1;
    return in[i][in[i].size() == 1 ? 0 : static_cast<std::size_t>(line)];
  }
  Approximate at(const Position& position, std::int64_t row, std::int64_t column, Approximate sum) const {
    const double factor = problem.attributes.real("alpha") * scale(3, row) * scale(4, column);
    const bool plain = in.size() == 2 && factor == 1;
    Approximate result = {sum.value * factor, sum.slack * std::fabs(factor)};
    if (!plain) result.slack += 6 * std::fabs(result.value);
    const double beta = problem.attributes.real("beta");
    if (c.empty() || beta == 0) return result;
    const double added = beta * c[0].at(position);
    result.value += added;
    result.slack += 2 * std::fabs(added) + std::fabs(result.value);
    return result;
  }
};

std::vector<Answer> solve_matmul(const Problem& problem, const std::vector<Values>& inputs) {
  const Attributes& attributes = problem.attributes;
  const Matrix a(inputs[0], problem.inputs[0], true, attributes.boolean("transpose_a"));
  const Matrix b(inputs[1], problem.inputs[1], false, attributes.boolean("transpose_b"));
  const Dims joint = broadcast_shapes(a.batch, b.batch);
  const Affine affine(problem, inputs);
  Answer out;
  for_each_position(joint, [&](const Position& position) {
    const std::int64_t ma = a.index(position, joint), mb = b.index(position, joint);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < b.columns; ++j) {
        Position at = position;
        std::size_t rank = joint.size();
        if (problem.inputs[0].shape.size() > 1) at[rank++] = i;
        if (problem.inputs[1].shape.size() > 1) at[rank++] = j;
        const Approximate result = affine.at(at, i, j, product(a, ma, i, b, mb, j));
        out.add(result.value, result.slack);
      }
    }
  });
  return {out};
}

std::vector<Answer> solve_linear(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& weight = problem.inputs[1].shape;
  const std::int64_t features = weight[1];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < problem.inputs[0].shape.size(); ++i) rows *= problem.inputs[0].shape[i];
  const Matrix x(inputs[0], make_spec(DataType::float64, {rows, features}), true, false);
  const Matrix w(inputs[1], problem.inputs[1], false, true);
  const std::string_view activation = problem.attributes.choice("activation");
  Answer out;
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t j = 0; j < weight[0]; ++j) {
      Approximate sum = product(x, 0, i, w, 0, j);
      if (inputs.size() == 3) {
        const double bias = inputs[2][static_cast<std::size_t>(j)];
        sum.value += bias;
        sum.slack += std::fabs(sum.value) + std::fabs(bias);
      }
      const Approximate result = activation == "none" ? sum : apply_activation(activation, sum);
      out.add(result.value, result.slack);
    }
  }
  return {out};
}

}  // namespace

std::span<const Reference> matrix_references() {
  static constexpr Reference rows[] = {
      {OpId::matmul, solve_matmul, gradients_of_matmul},
      {OpId::linear, solve_linear, gradients_of_linear},
  };
  return rows;
}

}  // namespace xpuruntime::oracle
