#include <numbers>

#include "backends/oracle_gradients.h"

namespace xpuruntime::oracle {
namespace {

/// Where the elements of an operand of matmul lie, in row-major values of the shape it has.
class Operand {
 public:
  Operand(const Dims& shape, bool left, bool flag) {
    const std::size_t rank = shape.size();
    batch_ = rank < 2 ? Dims{} : Dims(std::span(shape.data(), rank - 2));
    rows = rank < 2 ? (left ? 1 : shape[0]) : shape[rank - 2];
    columns = rank < 2 ? (left ? shape[0] : 1) : shape[rank - 1];
    row_step_ = columns;
    column_step_ = 1;
    size_ = rows * columns;
    if (flag && rank >= 2) {
      std::swap(rows, columns);
      std::swap(row_step_, column_step_);
    }
  }
  const Dims& batch() const { return batch_; }
  std::int64_t first(const Position& position, const Dims& joint) const {
    std::int64_t matrix = 0;
    for (std::size_t i = 0; i < batch_.size(); ++i) {
      matrix = matrix * batch_[i] + (batch_[i] == 1 ? 0 : position[joint.size() - batch_.size() + i]);
    }
    return matrix * size_;
  }
  std::size_t at(std::int64_t first, std::int64_t row, std::int64_t column) const {
    return static_cast<std::size_t>(first + row * row_step_ + column * column_step_);
  }

  std::int64_t rows = 1, columns = 1;

 private:
  Dims batch_;
  std::int64_t row_step_ = 1, column_step_ = 1, size_ = 1;
};

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// y = x s(u(x)): its slope is s + x s (1 - s) u'. An error of e in u moves s by s (1 - s) e. 1 - s may have been taken
/// off with an error of 1 u.
Approximate gated_slope(double x, double u, double inner, double u_units) {
  const double s = sigmoid(u), bend = x * s * (1 - s) * inner;
  const double moved = u_units * std::fabs(u);
  return {s + bend, s * (function_units + 4 + moved) + std::fabs(bend) * (2 * function_units + 10 + moved) +
                        2 * std::fabs(x * s * inner) * (std::fabs(u) < 40 ? 1 : 0)};
}

Approximate slope(std::string_view name, double x) {
  if (name == "relu") return {x <= 0 ? 0.0 : 1.0, 0};
  if (name == "silu") return gated_slope(x, x, 1, 0);
  if (name == "gelu_tanh") {
    const double scale = 2 * std::sqrt(2 / std::numbers::pi);
    return gated_slope(x, scale * (x + 0.044715 * x * x * x), scale * (1 + 3 * 0.044715 * x * x), 5);
  }
  const double s = sigmoid(x);
  if (name == "sigmoid") return {s * (1 - s), (2 * function_units + 8) * s * (1 - s) + 2 * s * (1 - s > 0 ? 1 : 0)};
  if (name == "tanh") {
    const double y = std::tanh(x), v = 1 / (std::cosh(x) * std::cosh(x));
    return {v, (2 * function_units + 8) * v + (2 * function_units + 2) * y * y};  // by 1 - y^2, or by sigmoids
  }
  // gelu: Phi is a number of size 1, and an error of the exponent is one of the exponential.
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = 0.5 * std::erfc(-x / std::numbers::sqrt2);
  return {below + x * density, function_units + 4 + std::fabs(x) * density * (function_units + 4 + x * x)};
}

/// How fast the slope itself may change: at most this, for all x.
double bend_of(std::string_view name) { return name == "silu" ? 0.5 : 0.8; }

/// An activation's slope times the gradient, at an argument that may be off itself.
/// A relu whose argument may have either sign may pass the gradient or stop it.
Approximate slope_times(std::string_view name, Approximate x, double gradient) {
  const double size = std::fabs(gradient);
  if (name == "none") return {gradient, 0};
  const Approximate s = slope(name, x.value);
  if (name == "relu") {
    const bool unsure = x.slack > 0 && std::fabs(x.value) <= 0x1p-24 * x.slack;
    return {s.value == 0 ? 0 : gradient, unsure ? 0x1p24 * size : 0};
  }
  return {s.value * gradient, size * (s.slack + bend_of(name) * x.slack) + 2 * std::fabs(s.value * gradient)};
}

}  // namespace

std::vector<Answer> gradients_of_activation(const Problem& problem, const std::vector<Values>& inputs) {
  std::string name(to_string(problem.op));
  if (problem.op == OpId::gelu && problem.attributes.choice("approximate") == "tanh") name = "gelu_tanh";
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const Approximate result = slope_times(name, {inputs[0][i], 0}, inputs[1][i]);
    out.add(result.value, result.slack);
  }
  return {out};
}

std::vector<Answer> gradients_of_matmul(const Problem& problem, const std::vector<Values>& inputs) {
  const Operand a(problem.inputs[0].shape, true, problem.attributes.boolean("transpose_a"));
  const Operand b(problem.inputs[1].shape, false, problem.attributes.boolean("transpose_b"));
  const Dims joint = broadcast_shapes(a.batch(), b.batch());
  TermSums da(inputs[0].size()), db(inputs[1].size());
  std::size_t g = 0;
  for_each_position(joint, [&](const Position& position) {
    const std::int64_t first_a = a.first(position, joint), first_b = b.first(position, joint);
    for (std::int64_t i = 0; i < a.rows; ++i) {
      for (std::int64_t j = 0; j < b.columns; ++j, ++g) {
        for (std::int64_t p = 0; p < a.columns; ++p) {
          const std::size_t at_a = a.at(first_a, i, p), at_b = b.at(first_b, p, j);
          da.add(at_a, inputs[2][g] * inputs[1][at_b]);
          db.add(at_b, inputs[2][g] * inputs[0][at_a]);
        }
      }
    }
  });
  std::vector<Answer> out;  // integers have none
  if (is_floating(problem.inputs[0].dtype)) out.push_back(da.answer());
  if (is_floating(problem.inputs[1].dtype)) out.push_back(db.answer());
  return out;
}

// The sums before the activation are computed once more, in f32. Kernels that multiply bf16 alone round what is left
// of the gradient behind the activation to that: half a unit of bf16 in each term.
std::vector<Answer> gradients_of_linear(const Problem& problem, const std::vector<Values>& inputs) {
  const std::string_view activation = problem.attributes.choice("activation");
  const auto columns = static_cast<std::size_t>(problem.inputs[1].shape[0]);
  const auto features = static_cast<std::size_t>(problem.inputs[1].shape[1]);
  const bool has_bias = inputs.size() == 4;
  const bool rounds = activation != "none" && problem.inputs.back().dtype == DataType::bfloat16;
  const double rounding = rounds ? half_unit(DataType::bfloat16) * 0x1p24 : 0;
  TermSums dx(inputs[0].size()), dw(inputs[1].size()), db(columns);
  const Values& gradient = inputs.back();
  for (std::size_t g = 0; g < gradient.size(); ++g) {
    const std::size_t row = g / columns, column = g % columns;
    double sum = has_bias ? inputs[2][column] : 0, size = std::fabs(sum);
    for (std::size_t p = 0; p < features; ++p) {
      const double term = inputs[0][row * features + p] * inputs[1][column * features + p];
      sum += term;
      size += std::fabs(term);
    }
    const double units = sum_units(static_cast<double>(features)) + 2;
    const Approximate d = slope_times(activation, {sum, units * size}, gradient[g]);
    const double slack = d.slack + rounding * std::fabs(d.value);
    for (std::size_t p = 0; p < features; ++p) {
      const double x = inputs[0][row * features + p], w = inputs[1][column * features + p];
      dx.add(row * features + p, d.value * w, slack * std::fabs(w));
      dw.add(column * features + p, d.value * x, slack * std::fabs(x));
    }
    db.add(column, d.value, slack);
  }
  std::vector<Answer> out = {dx.answer(), dw.answer()};
  if (has_bias) out.push_back(db.answer());
  return out;
}

std::vector<Answer> gradients_of_conv(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims &in = problem.inputs[0].shape, &weight = problem.inputs[1].shape, &out = problem.inputs.back().shape;
  const std::size_t spatial = in.size() - 2;
  const std::vector<std::int64_t> stride = problem.attributes.list("stride"),
                                  padding = problem.attributes.list("padding"),
                                  dilation = problem.attributes.list("dilation");
  const std::int64_t group_out = weight[0] / problem.attributes.integer("groups");
  const Dims in_steps = contiguous_strides(in), weight_steps = contiguous_strides(weight);
  TermSums dx(inputs[0].size()), dw(inputs[1].size()), db(static_cast<std::size_t>(weight[0]));
  Dims taps(std::span(weight.data() + 1, weight.size() - 1));  // channel of the group, then the filter
  std::size_t g = 0;
  for_each_position(out, [&](const Position& at) {
    const double gradient = inputs.back()[g++];
    db.add(static_cast<std::size_t>(at[1]), gradient);
    for_each_position(taps, [&](const Position& tap) {
      std::int64_t x = at[0] * in_steps[0] + (at[1] / group_out * weight[1] + tap[0]) * in_steps[1];
      for (std::size_t i = 0; i < spatial; ++i) {
        const std::int64_t p = at[2 + i] * stride[i] - padding[i] + tap[1 + i] * dilation[i];
        if (p < 0 || p >= in[2 + i]) return;
        x += p * in_steps[2 + i];
      }
      std::int64_t w = at[1] * weight_steps[0];
      for (std::size_t i = 0; i <= spatial; ++i) w += tap[i] * weight_steps[1 + i];
      const auto at_x = static_cast<std::size_t>(x), at_w = static_cast<std::size_t>(w);
      dx.add(at_x, gradient * inputs[1][at_w]);
      dw.add(at_w, gradient * inputs[0][at_x]);
    });
  });
  std::vector<Answer> answers = {dx.answer(), dw.answer()};
  if (inputs.size() == 4) answers.push_back(db.answer());
  return answers;
}

}  // namespace xpuruntime::oracle
