// What the conformance suite's samples leave out: functions over the whole range of f32.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

/// A few mantissas of every exponent and both signs, with zeros, denormals, infinities and NaN among them.
std::vector<float> whole_range() {
  std::vector<float> values;
  for (std::uint32_t exponent = 0; exponent < 512; ++exponent) {
    for (std::uint32_t i = 0; i < 128; ++i) {
      const std::uint32_t mantissa = i == 0 ? 0 : i == 1 ? 0x7fffff : i * 0x10001u % 0x800000u;
      values.push_back(std::bit_cast<float>(exponent << 23 | mantissa));
    }
  }
  // And densely where the functions bend.
  for (int i = -40000; i <= 40000; ++i) values.push_back(static_cast<float>(i) / 1024);
  return values;
}

/// Runs a kernel on one contiguous vector of f32.
void run_vector(const char* op, const char* kernel_name, std::vector<float>& in, std::vector<float>& out) {
  const Problem problem = parse_problem(std::string(op) + "(f32[" + std::to_string(in.size()) + "]/4)");
  for (const auto& kernel : cpu_kernels(problem.op)) {
    if (kernel->name() != kernel_name) continue;
    const auto size = static_cast<std::int64_t>(in.size());
    const Tensor x = Tensor::view(in.data(), DataType::float32, {size});
    const Tensor y = Tensor::view(out.data(), DataType::float32, {size});
    const Tensor* const inputs[] = {&x};
    const Tensor* const outputs[] = {&y};
    const PrepareContext context{problem.device, cpu_profile(), Runtime::global().devices().driver(problem.device)};
    ASSERT_TRUE(kernel->prepare(problem, context)->run({inputs, outputs, nullptr, {}}).ok());
    return;
  }
  FAIL() << "no kernel " << kernel_name << " for " << op;
}

struct Function {
  const char* op;
  double (*exact)(double);
  double units;             // in the last place of the exact value
  double from = -HUGE_VAL;  // only finite arguments from here on are held to it
};

void PrintTo(const Function& function, std::ostream* out) { *out << function.op; }

double unit_in_last_place(double value) {
  const int exponent = std::max(std::ilogb(value), std::numeric_limits<float>::min_exponent - 1);
  return std::ldexp(1.0, exponent - 23);
}

class WholeRange : public ::testing::TestWithParam<Function> {};

TEST_P(WholeRange, IsWithinItsUnitsInTheLastPlace) {
  const Function& function = GetParam();
  std::vector<float> in = whole_range(), out(in.size());
  run_vector(function.op, "simd", in, out);
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double exact = function.exact(in[i]);
    const auto nearest = static_cast<float>(exact);
    if (std::isnan(exact)) {
      ASSERT_TRUE(std::isnan(out[i])) << function.op << "(" << in[i] << ") is " << out[i] << ", not NaN";
    } else if (std::isinf(nearest) || exact == 0) {
      ASSERT_EQ(out[i], nearest) << function.op << "(" << in[i] << ")";
    } else if (in[i] >= function.from) {
      ASSERT_LE(std::fabs(out[i] - exact), function.units * unit_in_last_place(exact))
          << function.op << "(" << in[i] << ") is " << out[i] << ", not " << exact;
    }
  }
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double silu(double x) { return x / (1 + std::exp(-x)); }
double elu(double x) { return x < 0 ? std::expm1(x) : x; }
double softplus(double x) { return std::log1p(std::exp(-std::fabs(x))) + std::fmax(x, 0); }
double gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }

// The bounds that math.h states. From -80 on the parts of silu are normal numbers.
INSTANTIATE_TEST_SUITE_P(EveryFunction, WholeRange,
                         ::testing::Values(Function{"exp", std::exp, 1}, Function{"log", std::log, 1},
                                           Function{"sqrt", std::sqrt, 0.5}, Function{"tanh", std::tanh, 4},
                                           Function{"sigmoid", sigmoid, 3}, Function{"silu", silu, 3, -80},
                                           Function{"gelu", gelu, 3.5, -1}, Function{"erf", std::erf, 4},
                                           Function{"elu", elu, 3}, Function{"softplus", softplus, 4},
                                           Function{"sin", std::sin, 4}, Function{"cos", std::cos, 4}),
                         [](const auto& info) { return std::string(info.param.op); });

}  // namespace
}  // namespace xpuruntime::cpu_tests
