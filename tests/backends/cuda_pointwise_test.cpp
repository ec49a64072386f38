#include <bit>
#include <cmath>
#include <limits>

#include "backends/cuda_fixture.h"

// Integers at their ends, and casts whose results are easily off by a rounding: what the conformance suite's random
// values do not meet.

namespace xpuruntime::cuda_tests {
namespace {

using CudaPointwise = CudaTest;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");
constexpr double i32_low = -2147483648.0, i64_low = -9223372036854775808.0;

/// 16 bytes at a time with a few elements left over, and one by one.
constexpr const char* layouts[] = {"[37]", "[37]{2}"};

/// An op's text with `T` for the inputs' layouts, its inputs and the result; of ops of one input the second is not
/// read.
struct Case {
  const char* text;
  double a;
  double b;
  double wanted;
};

void expect_everywhere(const Case& one, const char* kernel_name, const char* layout) {
  std::string text = cases::replaced(one.text, "L", layout);
  const Problem problem = problem_of(text);
  SCOPED_TRACE(text + " of " + std::to_string(one.a) + " and " + std::to_string(one.b) + " by " + kernel_name);
  Launch launch(problem, kernel_name);
  if (!launch.verdict().supported) {
    EXPECT_EQ(std::string_view(kernel_name), "elementwise") << launch.verdict().reason;
    return;
  }
  for (std::int64_t i = 0; i < 37; ++i) {
    launch.input(0).set({i}, one.a);
    if (problem.inputs.size() > 1) launch.input(1).set({i}, one.b);
  }
  const Status status = launch.run();
  ASSERT_TRUE(status.ok()) << status.message();
  EXPECT_TRUE(launch.output().margins_untouched());
  for (std::int64_t i = 0; i < 37; ++i) {
    const double got = launch.output().at({i});
    ASSERT_TRUE(std::isnan(one.wanted) ? std::isnan(got)
                                       : got == one.wanted && std::signbit(got) == std::signbit(one.wanted))
        << got << ", not " << one.wanted << ", at " << i;
  }
}

TEST_F(CudaPointwise, IntegersAtTheirEnds) {
  const Case all[] = {
      {"abs(i8L)", -128, 0, -128},
      {"abs(i32L)", i32_low, 0, i32_low},
      {"abs(i64L)", i64_low, 0, i64_low},
      {"neg(i32L)", i32_low, 0, i32_low},
      {"neg(i16L)", -32768, 0, -32768},
      {"neg(u8L)", 1, 0, 255},
      {"sign(i64L)", i64_low, 0, -1},
      {"clip(i8L; min=-1000 max=1000)", -128, 0, -128},
      {"clip(i64L; min=5)", i64_low, 0, 5},
      {"clip(u8L; max=7)", 255, 0, 7},
      {"bitwise_not(u8L)", 0, 0, 255},
      {"bitwise_not(boolL)", 1, 0, 0},
      {"bitwise_not(i64L)", 0, 0, -1},
      {"add(u8L, u8L)", 250, 10, 4},
      {"add(i8L, i8L)", 100, 100, -56},
      {"sub(u8L, u8L)", 0, 1, 255},
      {"mul(i8L, i8L)", 100, 100, 16},
      {"mul(i16L, i16L)", 300, 300, 24464},
      {"trunc_div(i32L, i32L)", i32_low, -1, i32_low},
      {"trunc_div(i64L, i64L)", i64_low, -1, i64_low},
      {"trunc_div(i8L, i8L)", -128, -1, -128},
      {"trunc_div(i32L, i32L)", -7, 2, -3},
      {"trunc_div(i32L, i32L)", 7, 0, 0},
      {"trunc_div(u8L, u8L)", 255, 0, 0},
      {"remainder(i32L, i32L)", -7, 2, 1},
      {"remainder(i32L, i32L)", 7, -2, -1},
      {"remainder(i64L, i64L)", i64_low, -1, 0},
      {"remainder(i16L, i16L)", 7, 0, 0},
      {"fmod(i32L, i32L)", -7, 2, -1},
      {"fmod(i32L, i32L)", i32_low, -1, 0},
      {"fmod(i8L, i8L)", 7, 0, 0},
      {"pow(i32L, i32L)", 3, 40, 689956897},  // modulo 2^32
      {"pow(i64L, i64L)", 2, 63, i64_low},
      {"pow(i64L, i64L)", 2, 64, 0},
      {"pow(i8L, i8L)", 2, -1, 0},
      {"pow(i8L, i8L)", -1, -3, -1},
      {"pow(i32L, i32L)", 0, 0, 1},
      {"pow(u8L, u8L)", 3, 5, 243},
      {"shift_left(i32L, i32L)", 1, 31, i32_low},
      {"shift_left(i32L, i32L)", 1, 32, 0},
      {"shift_left(i32L, i32L)", 1, -1, 0},
      {"shift_left(i8L, i8L)", 3, 7, -128},
      {"shift_left(u8L, u8L)", 255, 1, 254},
      {"shift_left(i64L, i64L)", 1, 63, i64_low},
      {"shift_right(i32L, i32L)", -8, 1, -4},
      {"shift_right(i32L, i32L)", -8, 99, -1},
      {"shift_right(i64L, i64L)", -1, 63, -1},
      {"shift_right(u8L, u8L)", 200, 3, 25},
      {"maximum(i64L, i64L)", i64_low, -1, -1},
      {"minimum(u8L, u8L)", 0, 255, 0},
      {"less(u8L, u8L)", 1, 255, 1},
      {"less(i8L, i8L)", 1, -1, 0},
      {"greater(i64L, i64L)", 0x1p62, i64_low, 1},
  };
  for (const Case& one : all) {
    for (const char* layout : layouts) {
      expect_everywhere(one, "elementwise", layout);
      expect_everywhere(one, "reference", layout);
    }
  }
}

TEST_F(CudaPointwise, FloatsThatNoRandomValueMeets) {
  const Case all[] = {
      {"maximum(TL, TL)", -0.0, 0.0, 0.0},
      {"minimum(TL, TL)", 0.0, -0.0, -0.0},
      {"maximum(TL, TL)", nan, 1, nan},
      {"minimum(TL, TL)", 1, nan, nan},
      {"clip(TL; min=-1 max=1)", nan, 0, nan},
      {"clip(TL; max=100000)", infinity, 0, 100000},
      {"sign(TL)", -0.0, 0, -0.0},
      {"round(TL)", 2.5, 0, 2},
      {"round(TL)", -0.5, 0, -0.0},
      {"pow(TL, TL)", -3, 2, 9},
      {"pow(TL, TL)", -2, 3, -8},
      {"pow(TL, TL)", 0, 0, 1},
      {"pow(TL, TL)", nan, 0, 1},
      {"pow(TL, TL)", 1, nan, 1},
      {"pow(TL, TL)", -2, 0.5, nan},
      {"pow(TL, TL)", -0.0, 0.5, 0.0},
      {"pow(TL, TL)", infinity, -1, 0.0},
      {"remainder(TL, TL)", -1, infinity, infinity},
      {"remainder(TL, TL)", 1, 0, nan},
      {"fmod(TL, TL)", -1, infinity, -1},
      {"fmod(TL, TL)", infinity, 1, nan},
      {"softplus(TL)", infinity, 0, infinity},
      {"softplus(TL)", -infinity, 0, 0.0},
      {"elu(TL)", -infinity, 0, -1},
      {"hard_swish(TL)", -8, 0, -0.0},
      {"isnan(TL)", nan, 0, 1},
      {"isinf(TL)", -infinity, 0, 1},
      {"equal(TL, TL)", nan, nan, 0},
      {"not_equal(TL, TL)", nan, nan, 1},
      {"less_equal(TL, TL)", -0.0, 0.0, 1},
      {"sin(TL)", infinity, 0, nan},
      {"erf(TL)", -infinity, 0, -1},
      {"acosh(TL)", 0.5, 0, nan},
      {"atanh(TL)", 1, 0, infinity},
  };
  for (const Case& one : all) {
    for (const char* dtype : {"f32", "f16", "bf16", "f64"}) {
      const std::string text = with_dtype(one.text, dtype);
      Case typed = one;
      typed.text = text.c_str();
      // 100000 is past the end of f16, and between two of bf16.
      if (one.wanted == 100000) typed.wanted = oracle::rounded(parse_data_type(dtype), one.wanted);
      for (const char* layout : layouts) {
        expect_everywhere(typed, "elementwise", layout);
        expect_everywhere(typed, "reference", layout);
      }
    }
  }
}

struct IntegerCast {
  const char* to;
  std::int64_t value;
  double wanted;
};

// Through float32 or float64 some of these would be rounded twice.
TEST_F(CudaPointwise, CastsOfIntegersAreRoundedOnce) {
  constexpr std::int64_t tie = (std::int64_t{1} << 60) + (std::int64_t{1} << 52);  // of bf16
  constexpr std::int64_t tie_of_f32 = (std::int64_t{1} << 62) + (std::int64_t{1} << 38);
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const IntegerCast all[] = {
      {"bf16", tie, 0x1p60},
      {"bf16", tie + 1, 0x1.02p60},
      {"bf16", tie - 1, 0x1p60},
      {"bf16", -tie - 1, -0x1.02p60},
      {"bf16", most, 0x1p63},
      {"f32", tie_of_f32, 0x1p62},
      {"f32", tie_of_f32 + 1, 0x1.000002p62},
      {"f32", -tie_of_f32 - 1, -0x1.000002p62},
      {"f32", -most - 1, -0x1p63},
      {"f16", 2049, 2048},
      {"f16", 2051, 2052},
      {"f16", 65519, 65504},
      {"f16", 65520, infinity},
      {"f16", -most - 1, -infinity},
      {"f64", most, 0x1p63},
      {"f64", (std::int64_t{1} << 53) + 1, 0x1p53},
      {"f8e4m3", 17, 16},
      {"f8e5m2", -most - 1, -infinity},
      {"i32", (std::int64_t{1} << 32) + 7, 7},
      {"i32", std::int64_t{1} << 31, i32_low},
      {"i16", 40000, -25536},
      {"i8", 200, -56},
      {"u8", -1, 255},
      {"bool", std::int64_t{1} << 32, 1},
      {"bool", 0, 0},
  };
  for (const IntegerCast& one : all) {
    for (const char* layout : layouts) {
      const std::string text = std::string("cast(i64") + layout + "; dtype=" + one.to + ")";
      SCOPED_TRACE(text + " of " + std::to_string(one.value));
      Launch launch(problem_of(text), "elementwise");
      ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
      for (std::int64_t i = 0; i < 37; ++i) launch.input(0).set_integer({i}, one.value);
      ASSERT_TRUE(launch.run().ok());
      for (std::int64_t i = 0; i < 37; ++i) ASSERT_EQ(launch.output().at({i}), one.wanted) << i;
    }
  }
}

TEST_F(CudaPointwise, CastsOfFloatsHoldWithinTheIntegers) {
  const Case all[] = {
      {"cast(TL; dtype=u8)", -5.7, 0, 0},
      {"cast(TL; dtype=u8)", 300, 0, 255},
      {"cast(TL; dtype=i8)", -5.7, 0, -5},
      {"cast(TL; dtype=i8)", -1000, 0, -128},
      {"cast(TL; dtype=i8)", nan, 0, 0},
      {"cast(TL; dtype=i16)", infinity, 0, 32767},
      {"cast(TL; dtype=i16)", -40000, 0, -32768},
      {"cast(TL; dtype=i32)", -infinity, 0, i32_low},
      {"cast(TL; dtype=i32)", infinity, 0, 2147483647},
      {"cast(TL; dtype=i32)", nan, 0, 0},
      {"cast(TL; dtype=i64)", infinity, 0, 0x1p63},  // as near as a double is to the last integer
      {"cast(TL; dtype=i64)", -infinity, 0, i64_low},
      {"cast(TL; dtype=i64)", nan, 0, 0},
      {"cast(TL; dtype=i64)", -2.5, 0, -2},
      {"cast(TL; dtype=bool)", 0.25, 0, 1},
      {"cast(TL; dtype=bool)", -0.0, 0, 0},
      {"cast(TL; dtype=bool)", nan, 0, 1},
  };
  for (const Case& one : all) {
    for (const char* dtype : {"f32", "f16", "bf16", "f64", "f8e5m2"}) {
      const std::string text = with_dtype(one.text, dtype);
      Case typed = one;
      typed.text = text.c_str();
      if (std::string_view(dtype) == "f8e5m2" && one.a == -5.7) typed.wanted = one.wanted == 0 ? 0 : -6;
      for (const char* layout : layouts) expect_everywhere(typed, "elementwise", layout);
    }
  }
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
