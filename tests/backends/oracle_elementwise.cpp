#include <cmath>
#include <numbers>

#include "backends/oracle_references.h"

namespace xpuruntime::oracle {
namespace {

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

Approximate gelu(double x) {
  // 1 + erf is rounded as a number of size 1: beside it the product with a large negative x loses its digits.
  return {0.5 * x * (1 + std::erf(x / std::numbers::sqrt2)), (function_units + 4) * std::fabs(x)};
}

Approximate gelu_tanh(double x) {
  const double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
  return {0.5 * x * (1 + std::tanh(inner)), (function_units + 6) * std::fabs(x)};
}

// x * sigmoid(x), or x / (1 + exp(-x)): an exp, an addition, a division and a product.
Approximate silu(double x) { return {x * sigmoid(x), (function_units + 4) * std::fabs(x * sigmoid(x))}; }

Approximate relative(double value, double units) { return {value, units * std::fabs(value)}; }

Approximate unary(const Problem& problem, double x) {
  switch (problem.op) {
    case OpId::relu:
      return {x <= 0 ? 0 : x, 0};  // NaN stays NaN, and -0 becomes +0
    case OpId::gelu:
      return problem.attributes.choice("approximate") == "tanh" ? gelu_tanh(x) : gelu(x);
    case OpId::silu:
      return silu(x);
    case OpId::sigmoid:
      return relative(sigmoid(x), function_units + 3);
    case OpId::tanh:
      return relative(std::tanh(x), function_units);
    case OpId::log:
      return relative(std::log(x), function_units);
    case OpId::exp:
      return relative(std::exp(x), function_units);
    default:
      return relative(std::sqrt(x), 1);
  }
}

double binary(OpId op, double x, double y) {
  switch (op) {
    case OpId::add:
      return x + y;
    case OpId::sub:
      return x - y;
    case OpId::mul:
      return x * y;
    default:
      return x / y;
  }
}

std::uint64_t multiply(std::uint32_t a, std::uint32_t b) { return std::uint64_t{a} * b; }

std::vector<Answer> solve_unary(const Problem& problem, const std::vector<Values>& inputs) {
  Answer out;
  for (const double x : inputs[0]) {
    const Approximate result = unary(problem, x);
    out.add(result.value, result.slack);
  }
  return {out};
}

std::vector<Answer> solve_binary(const Problem& problem, const std::vector<Values>& inputs) {
  const Dims& shape = problem.outputs[0].shape;
  const Broadcast a(inputs[0], problem.inputs[0].shape, shape), b(inputs[1], problem.inputs[1].shape, shape);
  Answer out;
  for_each_position(shape, [&](const Position& at) {
    const double value = binary(problem.op, a.at(at), b.at(at));
    out.add(value, std::fabs(value));
  });
  return {out};
}

// Element i looks at word i % 4 of block i / 4. The second input, where there is one, holds the seed and an offset that
// is added to i.
std::vector<Answer> solve_dropout(const Problem& problem, const std::vector<Values>& inputs) {
  const bool training = problem.attributes.boolean("training");
  const double p = problem.attributes.real("p");
  auto seed = static_cast<std::uint64_t>(problem.attributes.integer("seed"));
  std::uint64_t offset = 0;
  if (inputs.size() == 2) {
    seed = static_cast<std::uint64_t>(inputs[1][0]);
    offset = static_cast<std::uint64_t>(inputs[1][1]);
  }
  const double threshold = std::floor(p * 0x1p32);
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const std::uint64_t index = i + offset;
    const auto words =
        philox({static_cast<std::uint32_t>(index / 4), static_cast<std::uint32_t>(index / 4 >> 32), 0, 0},
               {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
    const bool kept = static_cast<double>(words[index % 4]) >= threshold;
    if (!training) {
      out.add(inputs[0][i], 0);
    } else if (kept) {
      const double value = inputs[0][i] / (1 - p);
      out.add(value, 3 * std::fabs(value));  // 1 - p, its inverse and the product may be rounded
    } else {
      out.add(0, 0);
    }
  }
  return {out};
}

// The product of a gradient and the inverse scale, and 1 where any gradient or product is not finite in the dtype that
// is written, else 0.
std::vector<Answer> solve_unscale(const Problem& problem, const std::vector<Values>& inputs) {
  Answer gradient, found;
  bool bad = false;
  for (const double x : inputs[0]) {
    const double value = x * inputs[1][0];
    gradient.add(value, std::fabs(value));
    bad |= !std::isfinite(x) || !std::isfinite(rounded(problem.outputs[0].dtype, value));
  }
  found.add(bad ? 1 : 0, 0);
  return {gradient, found};
}

}  // namespace

// An activation passes the error of its argument on by its slope, which is at most 1.13 for all of them.
Approximate apply_activation(std::string_view name, Approximate x) {
  Approximate out = {x.value <= 0 ? 0 : x.value, 0};
  if (name == "gelu") out = gelu(x.value);
  if (name == "silu") out = silu(x.value);
  out.slack += 1.13 * x.slack;
  return out;
}

std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = multiply(0xD2511F53, counter[0]), second = multiply(0xCD9E8D57, counter[2]);
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(first)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

std::span<const Reference> elementwise_references() {
  static constexpr Reference rows[] = {
      {{OpId::relu, OpId::gelu, OpId::silu, OpId::sigmoid, OpId::tanh}, solve_unary, gradients_of_activation},
      {{OpId::log, OpId::exp, OpId::sqrt}, solve_unary},
      {{OpId::add, OpId::sub, OpId::mul, OpId::div}, solve_binary},
      {OpId::dropout, solve_dropout},
      {OpId::unscale, solve_unscale},
  };
  return rows;
}

}  // namespace xpuruntime::oracle
