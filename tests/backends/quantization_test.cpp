// Quantized integers and back: the cases, the oracle, and what is refused.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cases.h"
#include "backends/cpu/plan_run.h"
#include "core/infer_calls.h"
#include "xpuruntime/dispatch/scope.h"
#include "xpuruntime/runtime/ops.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cases {

std::vector<CaseText> quantization_cases() {
  List list;
  list.each({"f32", "f16", "bf16", "f64"},
            {
                "quantize(T[1], T[])",
                "quantize(T[3,70], f32[])",
                "quantize(T[3,70], f32[1], i8[1])",
                "quantize(T[3,70], T[], u8[])",
                "quantize(T[2,5,33], f32[5], i8[5])",
                "quantize(T[2,5,33], f32[5]; dtype=i8)",
                "quantize(T[2,5,33], f32[33], u8[33]; dim=-1)",
                "quantize(T[2,5,33], f32[2]; dim=0)",
                "quantize(T[2,5,33], T[2,3,33], i8[2,3,33]; block_size=2)",
                "quantize(T[4,37], f32[4,3]; block_size=16)",
                "quantize(T[0,4], f32[])",
                "quantize(T[0,4], f32[4])",
                "quantize(T[9], f32[], i16[])",
                "quantize(T[7,9]{1,7}, f32[])",
                "quantize(T[7,9]{18,2}, f32[9]{2}, u8[9]{3}) -> u8[7,9]{9,1}",
                "quantize(T[2,6,5,7]{210,1,42,6}, f32[], u8[]) -> u8[2,6,5,7]{210,1,42,6}",  // channels last
                "quantize(T[2,6,5,7]{210,1,42,6}, f32[6], u8[6]) -> u8[2,6,5,7]",
            });
  list.each({"i8", "u8", "i32"}, {
                                     "dequantize(T[1], f32[])",
                                     "dequantize(T[3,70], f32[]; dtype=f16)",
                                     "dequantize(T[3,70], f32[1], T[1]; dtype=bf16)",
                                     "dequantize(T[3,70], f64[], T[]; dtype=f64)",
                                     "dequantize(T[2,5,33], f32[5], T[5])",
                                     "dequantize(T[2,5,33], f16[5])",
                                     "dequantize(T[2,5,33], f32[33], T[33]; dim=-1)",
                                     "dequantize(T[2,5,33], f32[33]; dim=2 dtype=bf16)",
                                     "dequantize(T[2,5,33], f32[2,3,33], T[2,3,33]; block_size=2)",
                                     "dequantize(T[0,4], f32[4])",
                                     "dequantize(T[7,9]{1,7}, f32[])",
                                     "dequantize(T[7,9]{18,2}, f32[9]{2}, T[9]{3}) -> f32[7,9]{9,1}",
                                 });
  for (const char* text : {
           "quantize(i32[3,70], f32[])",
           "quantize(i32[3,5,70], f32[5], i8[5])",
           "quantize(i32[3,70], f32[70], u8[70]; dim=1)",
           "quantize(f32[3,70], f32[3,1]; block_size=9223372036854775807)",
           "quantize(f32[400,301], f32[], u8[])",
           "quantize(f32[4,30,301], f32[30], i8[30])",
           "quantize(f32[37]/4, f32[]/4, u8[]/1) -> u8[37]/1",
           "dequantize(i16[40], f32[], i16[])",
           "dequantize(i8[400,301], f32[])",
           "dequantize(i8[37]/1, f32[]/4) -> f32[37]/4",
       }) {
    list.add(text);
  }
  list.each({"f32", "f16", "bf16"}, {"quantize(T[130], f32[], u8[])", "quantize(T[10,13], f32[13], i8[13])"},
            oracle::Fill::special);
  return list.take();
}

Checks quantization_checks() {
  return {
      .small = {"quantize(T[9,22], f32[])", "quantize(T[9,22], f32[22], i8[22])"},
      .mistakes =
          {
              {"quantize(f32[8,8], f32[8], i8[8])", "quantize(f32[8,8], f32[8], i8[8]; dim=0)"},
              {"dequantize(i8[8,8], f32[8], i8[8])", "dequantize(i8[8,8], f32[8], i8[8]; dim=0)"},
          },
  };
}

}  // namespace xpuruntime::cases

namespace xpuruntime::oracle {
namespace {

/// Which scale each element has.
std::vector<std::size_t> scales_of(const Problem& problem) {
  const Dims &shape = problem.inputs[0].shape, &scales = problem.inputs[1].shape;
  const std::int64_t block = problem.attributes.integer("block_size"), given = problem.attributes.integer("dim");
  const auto dim = static_cast<std::size_t>(given < 0 ? given + static_cast<std::int64_t>(shape.size()) : given);
  const bool single = block == 0 && (scales.empty() || scales[0] == 1);
  std::vector<std::size_t> out;
  for_each_position(shape, [&](const Position& at) {
    Position which = at;
    if (block != 0) which[dim] /= block;
    const std::int64_t index = single ? 0 : block == 0 ? at[dim] : dot(which, contiguous_strides(scales));
    out.push_back(static_cast<std::size_t>(index));
  });
  return out;
}

double zero_of(const std::vector<Values>& inputs, std::size_t which) {
  return inputs.size() > 2 ? inputs[2][which] : 0;
}

// The quotient is one of f32: which way a tie goes is part of the answer.
std::vector<Answer> solve_quantize(const Problem& problem, const std::vector<Values>& inputs) {
  const std::vector<std::size_t> scales = scales_of(problem);
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const double x = inputs[0][i], scale = inputs[1][scales[i]];
    const bool wide = problem.inputs[0].dtype == DataType::float64;
    const double quotient = wide ? x / scale : static_cast<double>(static_cast<float>(x) / static_cast<float>(scale));
    // To even: the nearest whole number, and of two equally near the one that is twice another.
    double whole = std::floor(quotient);
    if (quotient - whole > 0.5 || (quotient - whole == 0.5 && std::fmod(whole, 2) != 0)) ++whole;
    const double value = (std::isnan(quotient)   ? 0
                          : std::isinf(quotient) ? quotient
                                                 : whole) +
                         zero_of(inputs, scales[i]);
    const DataType dtype = problem.outputs[0].dtype;
    const double low = dtype == DataType::uint8 ? 0 : dtype == DataType::int8 ? -128 : -32768;
    const double high = dtype == DataType::uint8 ? 255 : dtype == DataType::int8 ? 127 : 32767;
    out.add(std::min(std::max(value, low), high), 0);
  }
  return {out};
}

// A 32-bit integer is rounded, and the product.
std::vector<Answer> solve_dequantize(const Problem& problem, const std::vector<Values>& inputs) {
  const std::vector<std::size_t> scales = scales_of(problem);
  Answer out;
  for (std::size_t i = 0; i < inputs[0].size(); ++i) {
    const double value = (inputs[0][i] - zero_of(inputs, scales[i])) * inputs[1][scales[i]];
    out.add(value, 2 * std::fabs(value));
  }
  return {out};
}

}  // namespace

std::span<const Reference> quantization_references() {
  static constexpr Reference rows[] = {
      {OpId::quantize, solve_quantize},
      {OpId::dequantize, solve_dequantize},
  };
  return rows;
}

}  // namespace xpuruntime::oracle

namespace xpuruntime {
namespace {

using oracle::Values;

Values solved(const std::string& text, const std::vector<Values>& inputs) {
  return oracle::solve(parse_problem(text), inputs)[0].value;
}

// Worked out by hand: the oracle itself under test.
TEST(QuantizationOracle, AgreesWithValuesWorkedOutByHand) {
  EXPECT_EQ(solved("quantize(f32[6], f32[], u8[])", {{1, 3, 5, -3, 600, -600}, {2}, {10}}),
            (Values{10, 12, 12, 8, 255, 0}));  // 0.5, 1.5, 2.5, -1.5
  EXPECT_EQ(solved("quantize(f32[2,2], f32[2], i8[2]; dim=0)", {{1, 2, 300, 400}, {1, 2}, {0, -5}}),
            (Values{1, 2, 127, 127}));
  EXPECT_EQ(solved("quantize(f32[3], f32[2]; dim=0 block_size=2)", {{8, 8, 8}, {2, 4}}), (Values{4, 4, 2}));
  EXPECT_EQ(solved("dequantize(u8[2,2], f32[2], u8[2])", {{7, 7, 0, 255}, {0.5, 2}, {7, 5}}),
            (Values{0, 4, -3.5, 500}));
}

TEST(Quantize, HoldsWhatIsBeyondTheRangeAndMakesNanTheZeroPoint) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  float values[] = {infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 3e38f, -3e38f};
  float scale[] = {0.001f};
  std::int8_t zero[] = {-7};
  const Tensor x(values, make_spec(DataType::float32, {5})), steps(scale, make_spec(DataType::float32, {}));
  const Tensor zeros(zero, make_spec(DataType::int8, {}));
  for (const auto& kernel : cpu_tests::cpu_kernels(OpId::quantize)) {
    KernelPolicy policy;
    policy.force("quantize", kernel->name());
    const ScopedPolicy scope(Runtime::global().dispatcher(), policy);
    const Tensor codes = ops::quantize(x, steps, {.zero_point = &zeros});
    const auto* got = codes.as<const std::int8_t>();
    EXPECT_EQ(std::vector<int>(got, got + 5), (std::vector<int>{127, -128, -7, 127, -128})) << kernel->name();
  }
}

TEST(QuantizationShapes, AreInferred) {
  EXPECT_EQ(outputs_of("quantize(f32[2,3], f32[])"), "u8[2,3]");
  EXPECT_EQ(outputs_of("quantize(f16[2,3], f16[3]; dtype=i8)"), "i8[2,3]");
  EXPECT_EQ(outputs_of("quantize(i32[2,3], f32[2], i8[2]; dim=0)"), "i8[2,3]");
  EXPECT_EQ(outputs_of("dequantize(u8[2,3], f32[])"), "f32[2,3]");
  EXPECT_EQ(outputs_of("dequantize(i32[2,5], f32[2,2], i32[2,2]; block_size=3 dtype=bf16)"), "bf16[2,5]");
}

TEST(QuantizationShapes, ThatDoNotFitAreRefused) {
  expect_refused("quantize(f32[2,3], f32[2])", "scale");
  expect_refused("quantize(f32[2,3], f32[3], u8[2])", "zero point");
  expect_refused("quantize(f32[2,3], f32[3]; dim=2)", "dim");
  expect_refused("quantize(f32[2,3], i32[3])", "not floating");
  expect_refused("quantize(i8[2,3], f32[3])", "not floating");
  expect_refused("quantize(f32[2,3], f32[3]; dtype=i64)", "i8, u8 or i16");
  expect_refused("quantize(f32[2,3], f32[], i8[]; dtype=i16)", "make them equal");
  expect_refused("quantize(f32[2,3], f32[3]; block_size=-1)", "negative");
  expect_refused("dequantize(f32[2,3], f32[])", "quantize it first");
  expect_refused("dequantize(i8[2,3], f32[], u8[])", "the codes' dtype");
  expect_refused("dequantize(i8[2,3], f32[]; dtype=i32)", "floating");
}

}  // namespace
}  // namespace xpuruntime
