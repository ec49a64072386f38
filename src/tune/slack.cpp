#include "tune/slack.h"

#include <algorithm>
#include <cmath>

#include "core/attention_inputs.h"
#include "core/elements.h"

namespace xpuruntime {
namespace {

std::size_t count_of(const Tensor& tensor) { return static_cast<std::size_t>(element_count(tensor.spec())); }

bool is_matrix_op(const Problem& problem) { return op_info(problem.op).category == OpCategory::matrix; }

/// So many units of the size of each value.
Slack relative(const Tensor& values, double units) {
  Slack slack(count_of(values));
  for (std::size_t i = 0; i < slack.size(); ++i) slack[i] = units * std::abs(values.as<double>()[i]);
  return slack;
}

std::vector<Slack> all_relative(const Solved& solved, double units) {
  std::vector<Slack> slacks;
  for (const Tensor& output : solved.operands.outputs()) {
    const bool real = output.dtype() == DataType::float64;
    slacks.push_back(real ? relative(output, units) : Slack(count_of(output), 0));
  }
  return slacks;
}

/// Where nothing better is known.
std::vector<Slack> by_largest(const Solved& solved) {
  std::vector<Slack> slacks;
  for (const Tensor& output : solved.operands.outputs()) {
    slacks.emplace_back(count_of(output), slack_of_largest(solved.problem, largest_of(output)));
  }
  return slacks;
}

std::vector<Slack> scaled(std::vector<Slack> slacks, double units) {
  for (Slack& slack : slacks) {
    for (double& each : slack) each *= units;
  }
  return slacks;
}

/// A product, what is added to it, and the activation behind it, whose slope is at most 1.13. 1 + erf is rounded as a
/// number of size 1: a gelu has the error of its argument's size, which is some Q.
std::vector<Slack> of_products(const Solved& solved) {
  const bool linear = solved.problem.op == OpId::linear, product = solved.problem.op == OpId::matmul;
  const std::string activation(linear ? solved.problem.attributes.choice("activation") : "none");
  Problem plain = solved.problem;
  if (linear) plain.attributes.set_choice("activation", "none");
  if (product) {
    for (const char* factor : {"alpha", "beta"}) {
      const double given = plain.attributes.real(factor);
      plain.attributes.set_real(factor, given * given);
    }
  }
  std::vector<Slack> slacks = root_of_squares(solved, plain);
  if (slacks.empty()) return slacks;
  // What comes after the sum: a bias, or some products and a sum.
  std::size_t more = product ? opt_ins_of(solved.problem).size() : 0;
  if (!product && solved.problem.inputs.size() > 2) more = 1;
  const double terms = summed_terms(solved.problem) + static_cast<double>(more);
  const double steep = activation == "none" ? 1 : 1.13;
  const double gelu = activation == "gelu" ? (function_units + 4) * std::min(std::sqrt(terms), 5.0) : 0;
  const double silu = activation == "silu" ? function_units + 4 : 0;
  const Tensor& out = solved.operands.outputs()[0];
  for (std::size_t i = 0; i < slacks[0].size(); ++i) {
    slacks[0][i] = (steep * walk_units(terms) + gelu) * slacks[0][i] + silu * std::abs(out.as<double>()[i]);
  }
  return slacks;
}

// A weight is exp(score - largest) over the sum of those: errors of the score and of the distance enter it relatively.
// With a running softmax each block of keys, of 32 or more, may scale what came before by one more exp. Kernels of
// 16-bit problems may keep the weights in 16 bits. The weights' errors show in the sum of weight * |value|.
std::vector<Slack> of_attention(const Solved& solved) {
  const std::vector<Tensor>& inputs = solved.operands.inputs();
  const auto size = static_cast<double>(inputs[0].shape()[3]);
  const auto keys = static_cast<double>(attention_keys(solved.problem.inputs));
  const double given = solved.problem.attributes.real("scale");
  const double scale = given == 0 ? 1 / std::sqrt(std::max(size, 1.0)) : std::abs(given);
  const double root = scale * std::sqrt(size) * largest_of(inputs[0]) * largest_of(inputs[1]);  // Q of any score
  const bool masked = inputs.size() > attention_mask && is_floating(inputs[attention_mask].dtype());
  const double mask = masked ? largest_of(inputs[attention_mask]) : 0;
  const double largest_score = 5 * root + mask;
  const double of_score = walk_units(size) * root + 3 * largest_score;
  const double of_weight =
      2 * (of_score + 2 * largest_score + function_units) + sum_units(keys) + (function_units + 2) * (1 + keys / 32);
  const bool narrow = solved.stored == DataType::float16 || solved.stored == DataType::bfloat16;
  const double kept = narrow ? epsilon_of(solved.stored) / 2 / solved.unit : 0;
  const Operands sizes = changed_inputs(
      solved, solved.problem, [](std::size_t input, double value) { return input == 2 ? std::abs(value) : value; });
  std::vector<Slack> slacks = scaled(results_of(solved, solved.problem, sizes), of_weight + sum_units(keys) + 4 + kept);
  // The logarithm of a sum has its relative error.
  if (slacks.size() > 1) slacks[1].assign(slacks[1].size(), of_weight + largest_score);
  return slacks;
}

/// Of an op that has no analysis of its own.
std::vector<Slack> by_category(const Solved& solved) {
  switch (op_info(solved.problem.op).category) {
    case OpCategory::activation:  // as relu
    case OpCategory::pooling:     // as largest elements
    case OpCategory::lookup:
    case OpCategory::movement:
      return all_relative(solved, 0);
    default:
      return {};
  }
}

std::vector<Slack> forward(const Solved& solved) {
  const double terms = summed_terms(solved.problem);
  switch (op_info(solved.problem.op).rounding) {
    case Rounding::exact:
      return all_relative(solved, 0);
    case Rounding::few_operations:
      return all_relative(solved, 3);
    case Rounding::function:
      return all_relative(solved, function_units + 4);
    case Rounding::gelu:
      return {relative(solved.operands.inputs()[0], function_units + 6)};
    case Rounding::products:
      return of_products(solved);
    case Rounding::attention:
      return of_attention(solved);
    case Rounding::sum:
      return scaled(root_of_squares(solved, solved.problem), walk_units(terms));
    case Rounding::mean:  // the mean of n squares is Q^2 / n
      return scaled(root_of_squares(solved, solved.problem), std::min(terms, 12.0) + 4);
    case Rounding::row_norm:
    case Rounding::batch_norm:
    case Rounding::power_norm:
    case Rounding::softmax:
      return slack_of_rows(solved);
    case Rounding::class_loss:
    case Rounding::pointwise_loss:
      return slack_of_loss(solved);
    case Rounding::rotation:  // two products and their sum
      return {Slack(count_of(solved.operands.outputs()[0]),
                    6 * largest_of(solved.operands.inputs()[0]) *
                        std::max(largest_of(solved.operands.inputs()[2]), largest_of(solved.operands.inputs()[3])))};
    case Rounding::largest:
      return {};
    case Rounding::category:
      break;
  }
  return by_category(solved);
}

}  // namespace

double sum_units(double n) { return std::min(n, 8 * std::sqrt(n)); }

double walk_units(double n) { return (std::min(n, 12.0) + 2) * std::sqrt(n); }

double unit_roundoff(const Problem& problem) {
  bool wide = false, narrow = false;
  for (const TensorSpec& spec : problem.inputs) {
    if (spec.dtype == DataType::tfloat32) return 0x1p-10;
    wide = wide || spec.dtype == DataType::float64;
    narrow = narrow || (is_floating(spec.dtype) && spec.dtype != DataType::float64);
  }
  return wide && !narrow ? 0x1p-52 : 0x1p-24;
}

double smallest_of(DataType dtype) {
  switch (dtype) {
    case DataType::float64:
      return 0x1p-1022;
    case DataType::float32:
    case DataType::tfloat32:
    case DataType::bfloat16:
      return 0x1p-126;
    case DataType::float16:
      return 0x1p-25;
    case DataType::float8_e4m3:
      return 0x1p-10;
    case DataType::float8_e5m2:
      return 0x1p-17;
    default:
      return 0;
  }
}

double summed_terms(const Problem& problem) {
  const Dims& first = problem.inputs.front().shape;
  if (first.empty()) return 1;
  const auto count = [](const TensorSpec& spec) { return static_cast<double>(element_count(spec)); };
  if (problem.op == OpId::matmul) {
    const bool by_rows = first.size() > 1 && problem.attributes.boolean("transpose_a");
    return static_cast<double>(by_rows ? first[first.size() - 2] : first.back());
  }
  if (problem.op == OpId::softmax || problem.op == OpId::log_softmax) {
    const std::int64_t dim = problem.attributes.integer("dim");
    return static_cast<double>(
        first[static_cast<std::size_t>(dim < 0 ? dim + static_cast<std::int64_t>(first.size()) : dim)]);
  }
  if (problem.op == OpId::attention) return static_cast<double>(first[3] + attention_keys(problem.inputs));
  if (is_matrix_op(problem)) {  // weights are [out, ...]: the rest is what one output reads
    const TensorSpec& weight = problem.inputs[1];
    return count(weight) / static_cast<double>(std::max<std::int64_t>(weight.shape.empty() ? 1 : weight.shape[0], 1));
  }
  if (op_info(problem.op).category == OpCategory::pooling) {  // windows may overlap
    double window = 1;
    for (const std::int64_t extent : problem.attributes.list("kernel_size")) window *= static_cast<double>(extent);
    return window;
  }
  return count(problem.inputs.front()) / std::max(count(problem.outputs.front()), 1.0);
}

double largest_of(const Tensor& tensor) {
  double largest = 0;
  const std::size_t size = size_of(tensor.dtype()), count = count_of(tensor);
  for (std::size_t i = 0; i < count; ++i) {
    const double value = std::abs(load_element(tensor.dtype(), tensor.as<const std::byte>() + i * size));
    if (std::isfinite(value)) largest = std::max(largest, value);
  }
  return largest;
}

Operands changed_inputs(const Solved& solved, const Problem& problem,
                        const std::function<double(std::size_t, double)>& change) {
  std::vector<Tensor> inputs, outputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const Tensor& input = solved.operands.inputs()[i];
    const std::size_t size = size_of(input.dtype());
    inputs.push_back(Tensor::empty(input.dtype(), input.shape()));
    for (std::size_t at = 0; at < count_of(input); ++at) {
      const double value = load_element(input.dtype(), input.as<const std::byte>() + at * size);
      store_element(input.dtype(), inputs.back().as<std::byte>() + at * size, change(i, value));
    }
  }
  for (const TensorSpec& spec : problem.outputs) outputs.push_back(Tensor::empty(spec.dtype, spec.shape));
  return {std::move(inputs), std::move(outputs)};
}

std::vector<Slack> results_of(const Solved& solved, const Problem& problem, const Operands& operands) {
  if (!solved.run(problem, operands)) return {};
  std::vector<Slack> results;
  for (const Tensor& output : operands.outputs()) {
    if (output.dtype() != DataType::float64) return {};
    results.emplace_back(output.as<double>(), output.as<double>() + count_of(output));
  }
  return results;
}

std::vector<Slack> root_of_squares(const Solved& solved, const Problem& problem) {
  const Operands squares = changed_inputs(solved, problem, [](std::size_t, double value) { return value * value; });
  std::vector<Slack> roots = results_of(solved, problem, squares);
  for (Slack& root : roots) {
    for (double& each : root) each = std::sqrt(each);
  }
  return roots;
}

double slack_of_largest(const Problem& problem, double largest) {
  double extent = 1;
  const OpCategory category = op_info(problem.op).category;
  const bool sums = category == OpCategory::matrix || category == OpCategory::reduction ||
                    category == OpCategory::normalization || category == OpCategory::loss;
  for (const TensorSpec& spec : problem.inputs) {
    for (const std::int64_t each : spec.shape) extent = std::max(extent, static_cast<double>(each));
  }
  if (problem.direction == Direction::forward && category == OpCategory::matrix) extent = summed_terms(problem);
  return (64 + (sums ? walk_units(extent) : 0)) * largest;
}

std::vector<Slack> slack_of(const Solved& solved) {
  const std::vector<Tensor>& outputs = solved.operands.outputs();
  const auto real = [](const Tensor& output) { return output.dtype() == DataType::float64; };
  if (std::none_of(outputs.begin(), outputs.end(), real)) return all_relative(solved, 0);  // integers are exact
  std::vector<Slack> slacks =
      solved.problem.direction == Direction::forward ? forward(solved) : slack_of_backward(solved);
  return slacks.size() == outputs.size() ? slacks : by_largest(solved);
}

}  // namespace xpuruntime
