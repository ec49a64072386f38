#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "backends/oracle.h"

namespace xpuruntime::oracle {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Random numbers of one case.
class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}
  double uniform(double low, double high) {
    return low + (high - low) * (static_cast<double>(engine_() >> 11) * 0x1p-53);
  }
  double whole(double low, double high) { return std::floor(uniform(low, high + 1)); }
  bool one_in(std::uint64_t n) { return engine_() % n == 0; }

 private:
  std::mt19937_64 engine_;
};

bool is_batch_norm(OpId op) { return op == OpId::batch_norm1d || op == OpId::batch_norm2d || op == OpId::batch_norm3d; }

/// Small enough for every sum and product to be exact in its dtype.
double small_integer(const Problem& problem, std::size_t input, DataType dtype, Random& random) {
  const bool is_unsigned = dtype == DataType::uint8;
  switch (problem.op) {
    case OpId::add:
      return random.whole(is_unsigned ? 0 : -50, 50);
    case OpId::sub:  // unsigned: what is taken off is never the larger
      if (is_unsigned) return input == 0 ? random.whole(50, 100) : random.whole(0, 50);
      return random.whole(-50, 50);
    case OpId::matmul:
    case OpId::linear:
    case OpId::conv2d:
    case OpId::conv3d:
      // Eight bits are summed in 32; the others in themselves.
      if (size_of(dtype) == 1) return is_unsigned ? random.whole(0, 255) : random.whole(-128, 127);
      return random.whole(-8, 8);
    case OpId::mul:
      return random.whole(is_unsigned ? 0 : -11, 11);
    case OpId::pow:
      return input == 0 ? random.whole(is_unsigned ? 0 : -5, 5) : random.whole(is_unsigned ? 0 : -2, 3);
    case OpId::shift_left:
      return input == 0 ? random.whole(is_unsigned ? 0 : -1, 1) : random.whole(0, 6);
    case OpId::remainder:
    case OpId::fmod:
    case OpId::trunc_div:
      return random.whole(is_unsigned ? 0 : -20, 20);
    default:
      if (input_spec(op_info(problem.op), input).values == InputValues::count) return random.whole(0, 6);
      return random.whole(is_unsigned ? 0 : -100, 100);
  }
}

double target(const Problem& problem, Random& random) {
  const Dims& scores = problem.inputs[0].shape;
  const std::int64_t classes = scores[scores.size() == 1 ? 0 : 1];
  if (random.one_in(5)) return static_cast<double>(problem.attributes.integer("ignore_index"));
  return random.whole(0, static_cast<double>(classes - 1));
}

double integer_input(const Problem& problem, std::size_t input, Random& random) {
  const DataType dtype = problem.inputs[input].dtype;
  if (dtype == DataType::boolean) return random.one_in(3) ? 0 : 1;
  switch (problem.op) {
    case OpId::embedding:
      if (input == 0) return random.whole(0, static_cast<double>(problem.inputs[1].shape[0] - 1));
      break;
    case OpId::cross_entropy:
    case OpId::nll_loss:
      return target(problem, random);
    case OpId::attention: {
      const Dims& keys = problem.inputs[1].shape;
      if (input == 5) return random.whole(0, static_cast<double>(keys[0] - 1));  // pages
      const bool paged = problem.inputs.size() > 5;
      return random.whole(0, static_cast<double>(paged ? problem.inputs[5].shape[1] * keys[1] : keys[2]));
    }
    case OpId::dropout:  // the seed and the offset
      return random.whole(0, 0x1p40);
    default:
      break;
  }
  return small_integer(problem, input, dtype, random);
}

double loss_input(const Problem& problem, std::size_t input, Random& random) {
  if (op_info(problem.op).rounding == Rounding::class_loss) {
    if (input == 2) return random.uniform(0.2, 1.2);  // weights
    if (input == 1) return random.uniform(0, 1);      // probabilities
    return problem.op == OpId::nll_loss ? random.uniform(-5, 0) : random.uniform(-3, 3);
  }
  const InputSpec spec = input_spec(op_info(problem.op), input);
  if (spec.values == InputValues::count) return random.whole(0, 6);
  const bool logarithms = !spec.logarithm.empty() && problem.attributes.boolean(spec.logarithm);
  if (input == 0 && !spec.logarithm.empty()) return logarithms ? random.uniform(-2, 2) : random.uniform(0.05, 3);
  if (input == 0 || logarithms) return random.uniform(-5, 0);  // of probabilities
  return random.one_in(7) ? 0 : random.uniform(0, 1);
}

double elementwise_input(const Problem& problem, std::size_t input, Random& random) {
  switch (problem.op) {
    case OpId::log:
      return random.one_in(8) ? random.uniform(0.99, 1.01) : std::exp2(random.uniform(-12, 12));
    case OpId::sqrt:
      return random.one_in(20) ? 0 : std::exp2(random.uniform(-12, 12));
    case OpId::div:
      if (input == 1) return random.uniform(0.25, 2) * (random.one_in(2) ? 1 : -1);
      return random.uniform(-1, 1);
    case OpId::remainder:
    case OpId::fmod:
      if (input == 1) return random.uniform(0.25, 2) * (random.one_in(2) ? 1 : -1);
      return random.uniform(-6, 6);
    case OpId::pow:
      return input == 0 ? std::exp2(random.uniform(-4, 4)) : random.uniform(-3, 3);
    case OpId::reciprocal:
      return std::exp2(random.uniform(-12, 12)) * (random.one_in(2) ? 1 : -1);
    case OpId::asin:
    case OpId::acos:
    case OpId::atanh:
      return random.uniform(-0.99, 0.99);
    case OpId::acosh:
      return random.uniform(1, 9);
    case OpId::equal:
    case OpId::not_equal:
    case OpId::less:
    case OpId::less_equal:
    case OpId::greater:
    case OpId::greater_equal:
      return random.whole(-3, 3);  // some are equal
    case OpId::cast:
      return random.uniform(-100, 100);
    default:  // functions with tails: mostly where they bend, sometimes far out
      return random.one_in(16) ? random.uniform(-30, 30) : random.uniform(-6, 6);
  }
}

double floating_input(const Problem& problem, std::size_t input, Random& random) {
  if (problem.direction == Direction::backward && input + 1 == problem.inputs.size()) return random.uniform(-1, 1);
  switch (op_info(problem.op).category) {
    case OpCategory::loss:
      return loss_input(problem, input, random);
    case OpCategory::elementwise:
    case OpCategory::activation:
      return elementwise_input(problem, input, random);
    case OpCategory::normalization:
      if (is_batch_norm(problem.op) && input == 2) return random.uniform(0.5, 1.5);         // a variance
      if (input == 0 && problem.op != OpId::normalize) return random.uniform(-1, 1) + 1.5;  // a mean to be taken off
      return random.uniform(-1, 1);
    case OpCategory::movement:
      if (problem.op == OpId::cast) return elementwise_input(problem, input, random);
      if (problem.op == OpId::quantize || problem.op == OpId::dequantize) {
        return input == 1 ? random.uniform(0.01, 0.1) : random.uniform(-6, 6);
      }
      return random.uniform(-1, 1);
    case OpCategory::reduction:
      return random.uniform(-4, 4);
    default:
      if (problem.op == OpId::attention && input == 3) return random.one_in(4) ? -infinity : random.uniform(-2, 2);
      return random.uniform(-1, 1);
  }
}

/// What the op's row bounds: indices, and places of which no two are alike as long as there are enough.
Values bounded_input(const InputSpec& row, const Problem& problem, std::size_t count, Random& random) {
  std::vector<double> order(static_cast<std::size_t>(std::max<std::int64_t>(row.bound(problem), 1)));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[static_cast<std::size_t>(random.whole(0, static_cast<double>(i - 1)))]);
  }
  Values values(count);
  for (std::size_t i = 0; i < count; ++i) {
    const double any = random.whole(0, static_cast<double>(order.size() - 1));
    values[i] = order[row.values == InputValues::place ? i % order.size() : static_cast<std::size_t>(any)];
  }
  return values;
}

/// Some rows of a mask leave no key at all.
void close_rows(const TensorSpec& spec, Values& mask) {
  if (spec.shape.empty()) return;
  const auto length = static_cast<std::size_t>(spec.shape.back());
  const double closed = spec.dtype == DataType::boolean ? 0 : -infinity;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (i / length % 5 == 2) mask[i] = closed;
  }
}

void add_special(const TensorSpec& spec, Values& values, Random& random) {
  if (!is_floating(spec.dtype)) return;
  const double huge = spec.dtype == DataType::float16 ? 60000 : spec.dtype == DataType::float64 ? 1e308 : 3e38;
  const double tiny =  // a denormal
      spec.dtype == DataType::float16   ? 0x1p-20
      : spec.dtype == DataType::float64 ? 0x1p-1030
                                        : 0x1p-130;
  const double special[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0, huge, -huge,
                            tiny,     -tiny};
  for (double& value : values) {
    if (random.one_in(6)) value = rounded(spec.dtype, special[static_cast<std::size_t>(random.whole(0, 8))]);
  }
}

}  // namespace

std::vector<Values> make_inputs(const Problem& problem, std::uint64_t seed, Fill fill) {
  Random random(seed);
  std::vector<Values> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) {
    const TensorSpec& spec = problem.inputs[i];
    Values values(static_cast<std::size_t>(element_count(spec)));
    for (double& value : values) {
      const double exact =
          is_floating(spec.dtype) ? floating_input(problem, i, random) : integer_input(problem, i, random);
      value = rounded(spec.dtype, exact);  // the oracle sees exactly what the kernel sees
    }
    const InputSpec row = input_spec(op_info(problem.op), i);
    if (row.bound != nullptr) values = bounded_input(row, problem, values.size(), random);
    if (problem.op == OpId::attention && i == 3) close_rows(spec, values);
    if (fill == Fill::special) add_special(spec, values, random);
    // Where strides are 0, elements share memory, and the last one written stands for all.
    if (std::find(spec.strides.begin(), spec.strides.end(), 0) != spec.strides.end()) {
      values = elements(spec, layout(spec, values).data());
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

}  // namespace xpuruntime::oracle
