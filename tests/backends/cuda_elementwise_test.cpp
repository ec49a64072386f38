#include <bit>

#include "backends/cuda_fixture.h"
#include "xpuruntime/core/float_formats.h"

namespace xpuruntime::cuda_tests {
namespace {

using CudaElementwise = CudaTest;

Dims broadcast_index(const Dims& shape, const Dims& out) {
  Dims index = Dims::filled(shape.size(), 0);
  for (std::size_t i = 0; i < shape.size(); ++i) index[i] = shape[i] == 1 ? 0 : out[out.size() - shape.size() + i];
  return index;
}

using oracle::rounded;

void expect_sum(const std::string& text, std::mt19937_64& random) {
  SCOPED_TRACE(text);
  const Problem problem = problem_of(text);
  Launch launch(problem, "elementwise");
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  launch.fill(random);
  const Status status = launch.run();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(launch.output().margins_untouched());
  for_each_index(problem.outputs[0].shape, [&](const Dims& index) {
    const double a = launch.input(0).at(broadcast_index(problem.inputs[0].shape, index));
    const double b = launch.input(1).at(broadcast_index(problem.inputs[1].shape, index));
    // The exact sum, rounded once: float64 holds the sum of any two of the narrower values.
    ASSERT_EQ(launch.output().at(index), rounded(problem.outputs[0].dtype, a + b)) << to_string(index);
  });
}

TEST_F(CudaElementwise, AddsEveryDtypeExactly) {
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f32", "f16", "bf16", "f64", "i32", "i64"}) {
    for (const std::string count : {"1", "7", "8", "9", "1023", "100003"}) {
      expect_sum("add(" + dtype + "[" + count + "], " + dtype + "[" + count + "])", random());
    }
    expect_sum("add(" + dtype + "[3,5]{10,2}, " + dtype + "[5])", random());
  }
}

TEST_F(CudaElementwise, AddsAnyLayout) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "add(f32[5,7], f32[7])",
           "add(f32[5,7], f32[5,1])",
           "add(f32[5,1], f32[1,7])",
           "add(f32[], f32[3,4])",
           "add(f32[], f32[])",
           "add(f32[5,7]{1,5}, f32[5,7])",
           "add(f32[5,7]{20,2}, f32[5,7]) -> f32[5,7]{1,6}",
           "add(f16[100]/2, f16[100])",
           "add(f16[100], f16[100]) -> f16[100]/4",
           "add(f32[2,1,3,1,2,1,3,1], f32[1,2,1,2,1,3,1,2])",
           "add(i32[0,3], i32[3])",
           "add(bf16[4,8,16], bf16[4,8,16])",
       }) {
    expect_sum(text, random());
  }
}

TEST_F(CudaElementwise, IntegersWrapAround) {
  Launch launch(problem_of("add(i32[9], i32[9])"), "elementwise");
  for (std::int64_t i = 0; i < 9; ++i) {
    launch.input(0).set({i}, std::numeric_limits<std::int32_t>::max());
    launch.input(1).set({i}, static_cast<double>(i));
  }
  ASSERT_TRUE(launch.run().ok());
  EXPECT_EQ(launch.output().at({0}), 2147483647.0);
  EXPECT_EQ(launch.output().at({1}), -2147483648.0);
  EXPECT_EQ(launch.output().at({8}), -2147483641.0);
}

/// A function in float64, and how far off it may be before it is rounded: in 2^-24 of the input and of the result.
struct Activation {
  const char* text;
  double (*exact)(double);
  double input_units;
  double result_units;
};

double gelu_tanh(double x) { return x / (1 + std::exp(-2 * std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

constexpr Activation activations[] = {
    {"relu(T[65536]A)", [](double x) { return x <= 0 ? 0 : x; }, 0, 0},
    {"gelu(T[65536]A)", [](double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }, 12, 0},
    {"gelu(T[65536]A; approximate=tanh)", gelu_tanh, 14, 0},
    {"silu(T[65536]A)", [](double x) { return x / (1 + std::exp(-x)); }, 0, 128},
    {"sigmoid(T[65536]A)", [](double x) { return 1 / (1 + std::exp(-x)); }, 0, 128},
    {"tanh(T[65536]A)", [](double x) { return std::tanh(x); }, 0, 8},
    {"log(T[65536]A)", [](double x) { return std::log(x); }, 0, 8},
    {"exp(T[65536]A)", [](double x) { return std::exp(x); }, 0, 8},
    {"sqrt(T[65536]A)", [](double x) { return std::sqrt(x); }, 0, 1},
};

/// Half the distance of a 16-bit float from the next one.
double half_spacing(DataType dtype, double value) {
  const bool half = dtype == DataType::float16;
  const int exponent = value == 0 ? -1000 : std::ilogb(value);
  return std::ldexp(0.5, std::max(exponent, half ? -14 : -126) - (half ? 10 : 7));
}

void expect_all_inputs(const Activation& activation, DataType dtype, const std::string& alignment) {
  std::string text = activation.text;
  text.replace(text.find('A'), 1, alignment);
  text.replace(text.find('T'), 1, to_string(dtype));
  SCOPED_TRACE(text);
  Launch launch(problem_of(text), "elementwise");
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  for (std::int64_t i = 0; i < 65536; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    launch.input(0).set({i}, dtype == DataType::float16 ? decode_float16(bits) : decode_bfloat16(bits));
  }
  ASSERT_TRUE(launch.run().ok());
  for (std::int64_t i = 0; i < 65536; ++i) {
    const double x = launch.input(0).at({i}), got = launch.output().at({i}), wanted = activation.exact(x);
    if (std::isnan(wanted)) {
      ASSERT_TRUE(std::isnan(got)) << got << " of " << x;
      continue;
    }
    ASSERT_EQ(std::signbit(got), std::signbit(wanted)) << got << ", not " << wanted << " of " << x;
    if (std::isinf(rounded(dtype, wanted))) {
      ASSERT_EQ(got, rounded(dtype, wanted)) << x;
      continue;
    }
    const double size = std::isinf(x) ? 0 : std::fabs(x);
    const double units = activation.input_units * size + activation.result_units * std::fabs(wanted);
    const double bound = half_spacing(dtype, wanted) + units * 0x1p-24 + 0x1p-148;  // the last for f32's own spacing
    ASSERT_NEAR(got, wanted, bound) << x;
  }
}

TEST_F(CudaElementwise, ActivationsOfEvery16BitInput) {
  for (const Activation& activation : activations) {
    for (const DataType dtype : {DataType::float16, DataType::bfloat16}) {
      expect_all_inputs(activation, dtype, "");    // 16 bytes at a time
      expect_all_inputs(activation, dtype, "/2");  // one by one
    }
  }
}

/// Values around every boundary of the narrow formats, random bit patterns of doubles and floats, and the specials.
std::vector<double> hard_values(std::mt19937_64& random) {
  std::vector<double> values = {
      0.0, -0.0, 1, -1, 448, 464, 465, 480, -464.0000001, 65504, 65519.999, 65520, 57344, 61440, 61439.99, 0x1p-9,
      0x1p-10, 0x1.8p-10, 0x1p-16, 0x1p-17, 0x1.0000001p-17, 0x1p-24, 0x1p-25, 0x1.00001p-25, 0x1p-133, 0x1p-134,
      0x1p-149, 0x1p-150, 0x1p-1074, 0x1.fffffep127, 0x1.ffp127, 0x1.feffffp127, 1e300,
      std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
      std::numeric_limits<double>::quiet_NaN(),
      // Just off a tie of float16 by less than float32 can tell: double rounding goes wrong.
      1 + 0x1p-11 + 0x1p-40, 1 + 0x1p-11 - 0x1p-40, 1 + 0x1p-8 + 0x1p-40, 1 + 0x1p-4 + 0x1p-40};
  for (int i = 0; i < 4000; ++i) {
    values.push_back(std::bit_cast<double>(random()));
    const double small =
        std::ldexp(1 + static_cast<double>(random() % 4096) / 4096, static_cast<int>(random() % 60) - 40);
    values.push_back(random() % 2 ? small : -small);
  }
  return values;
}

void expect_cast(DataType from, DataType to, const Dims& strides, std::mt19937_64& random) {
  SCOPED_TRACE(std::string(to_string(from)) + " to " + std::string(to_string(to)));
  const std::vector<double> values = hard_values(random);
  const auto count = static_cast<std::int64_t>(values.size());
  Problem problem = problem_of("cast(f32[" + std::to_string(count) + "]; dtype=" + std::string(to_string(to)) + ")");
  problem.inputs[0] = make_spec(from, {count}, strides);
  problem.outputs[0] = make_spec(to, {count}, strides);
  Launch launch(problem, "elementwise");
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  for (std::int64_t i = 0; i < count; ++i) launch.input(0).set({i}, values[static_cast<std::size_t>(i)]);
  ASSERT_TRUE(launch.run().ok());
  EXPECT_TRUE(launch.output().margins_untouched());
  for (std::int64_t i = 0; i < count; ++i) {
    const double value = launch.input(0).at({i});
    const double wanted = rounded(to, value);
    const double got = launch.output().at({i});
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(got) : got == wanted && std::signbit(got) == std::signbit(wanted))
        << value << " became " << got << ", not " << wanted;
  }
}

TEST_F(CudaElementwise, CastsEveryPairWithOneRounding) {
  SCOPED_TRACE(seed_text());
  constexpr DataType floats[] = {DataType::float64,  DataType::float32,     DataType::float16,
                                 DataType::bfloat16, DataType::float8_e4m3, DataType::float8_e5m2};
  for (const DataType from : floats) {
    for (const DataType to : floats) {
      expect_cast(from, to, {1}, random());
      expect_cast(from, to, {3}, random());
    }
  }
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
