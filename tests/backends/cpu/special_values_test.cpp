// NaN, infinities and zeros of both signs where an op's definition says what they do: by every kernel of the CPU that
// takes the problem.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "backends/cases.h"
#include "backends/cpu/forced_call.h"
#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

using oracle::Values;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A problem with the usual values, of which some may be changed before it runs.
struct SpecialRun {
  Problem problem;
  std::vector<Values> inputs;

  explicit SpecialRun(const std::string& text)
      : problem(parse_problem(text)), inputs(oracle::make_inputs(problem, 7, oracle::Fill::usual)) {
    for (std::size_t i = 0; i < inputs.size(); ++i) {  // targets that count
      if (problem.inputs[i].dtype != DataType::int64) continue;
      for (std::size_t j = 0; j < inputs[i].size(); ++j) inputs[i][j] = static_cast<double>(j % 5);
    }
  }

  std::vector<float> by(const std::string& kernel, std::size_t output = 0) const {
    std::vector<Tensor> tensors;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<std::byte> bytes = oracle::layout(problem.inputs[i], inputs[i]);
      tensors.push_back(Tensor::empty(problem.inputs[i].dtype, problem.inputs[i].shape));
      std::memcpy(tensors.back().data(), bytes.data(), bytes.size());
    }
    return forced_call(kernel, problem.attributes, tensors, problem.direction)[output];
  }

  /// Those that take it with an output in f32.
  std::vector<std::string> kernels() const {
    Problem asked = problem;
    for (TensorSpec& spec : asked.outputs) spec.dtype = DataType::float32;
    std::vector<std::string> names;
    for (const auto& kernel : cpu_kernels(problem.op)) {
      if (kernel->supports(asked, cpu_profile()).supported) names.emplace_back(kernel->name());
    }
    return names;
  }
};

bool same_bits(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

/// What is set at one place of the first input of 6 lines spoils all of its line and nothing of another.
void expect_spoils_its_line(const std::string& text, double value) {
  const SpecialRun clean(text);
  const std::size_t length = clean.inputs[0].size() / 6;
  for (const std::string& kernel : clean.kernels()) {
    const std::vector<float> before = clean.by(kernel);
    const std::size_t out_length = before.size() / 6;
    for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
      SpecialRun spoilt = clean;
      spoilt.inputs[0][2 * length + at] = value;
      const std::vector<float> after = spoilt.by(kernel);
      for (std::size_t i = 0; i < after.size(); ++i) {
        const bool right = i / out_length == 2 ? std::isnan(after[i]) : same_bits(after[i], before[i]);
        ASSERT_TRUE(right) << kernel << " on " << text << " with " << value << " at " << at << ": value " << i << " is "
                           << after[i] << ", before " << before[i];
      }
    }
  }
}

TEST(SpecialValues, FactorsBeyondFloatsKeepTheirDigits) {
  for (const char* dtype : {"f32", "bf16"}) {
    for (const char* factors : {"alpha=1e40 beta=1e-42", "alpha=1e-42 beta=1e40", "alpha=1e-45"}) {
      const std::string t = dtype;
      SpecialRun run("matmul(" + t + "[9,8], " + t + "[8,33], " + t + "[9,33]; " + factors + ")");
      const double alpha = run.problem.attributes.real("alpha"), beta = run.problem.attributes.real("beta");
      // Powers of two, exact in every dtype, so that neither what is large nor what is small leaves the range of
      // floats.
      std::fill(run.inputs[0].begin(), run.inputs[0].end(), alpha > 1 ? 0x1p-100 : 0x1p60);
      std::fill(run.inputs[1].begin(), run.inputs[1].end(), alpha > 1 ? 0x1p-20 : 0x1p60);
      std::fill(run.inputs[2].begin(), run.inputs[2].end(), beta > 1 ? 0x1p-120 : 0x1p100);
      const double wanted = alpha * 8 * run.inputs[0][0] * run.inputs[1][0] + beta * run.inputs[2][0];
      for (const std::string& kernel : run.kernels()) {
        for (const float got : run.by(kernel)) ASSERT_NEAR(got / wanted, 1, 1e-6) << kernel << " " << dtype << factors;
      }
    }
  }
}

TEST(SpecialValues, OfWhatABetaOfZeroLeavesOutAreNotRead) {
  SpecialRun run("matmul(f32[9,20], f32[20,24], f32[24]; beta=0)");
  const SpecialRun plain("matmul(f32[9,20], f32[20,24])");  // of the same numbers
  run.inputs[2].assign(24, nan);
  EXPECT_GE(run.kernels().size(), 4u);
  for (const std::string& kernel : run.kernels()) EXPECT_EQ(run.by(kernel), plain.by(kernel)) << kernel;
}

TEST(SpecialValues, NanSpoilsItsLineAndNoOther) {
  for (const char* text : cases::checks().by_lines) {
    expect_spoils_its_line(text, nan);
  }
}

// Zeros of the padding are multiplied like any other number, but by onednn on some processors.
TEST(SpecialValues, AnInfiniteWeightMeetsThePadding) {
  for (const char* text :
       {"conv2d(f32[1,4,8,8], f32[4,4,3,3]; padding=1)", "conv2d(f32[1,4,8,8], f32[4,1,3,3]; padding=1 groups=4)",
        "conv3d(f32[1,4,1,8,8], f32[4,4,1,3,3]; padding=0,1,1)"}) {
    SpecialRun run(text);
    for (double& value : run.inputs[0]) value = 1;
    for (double& value : run.inputs[1]) value = 1;
    run.inputs[1][0] = infinity;  // of the first output's upper left tap
    for (const std::string& kernel : run.kernels()) {
      if (kernel == "winograd" || kernel == "onednn") continue;  // docs/interfaces.md
      const std::vector<float> out = run.by(kernel);
      for (std::size_t i = 0; i < 64; ++i) {
        if (i < 8 || i % 8 == 0) {
          ASSERT_TRUE(std::isnan(out[i])) << kernel << " on " << text << " at " << i << ": " << out[i];
        } else {
          ASSERT_EQ(out[i], static_cast<float>(infinity)) << kernel << " on " << text << " at " << i;
        }
      }
    }
  }
}

TEST(SpecialValues, AnInfiniteGradientMeetsThePadding) {
  SpecialRun run("conv2d:backward(f32[1,2,8,8], f32[2,2,3,3], f32[1,2,8,8]; padding=1)");
  for (std::vector<double>& values : run.inputs) std::fill(values.begin(), values.end(), 1);
  run.inputs[2][0] = infinity;  // the upper left corner's, whose upper left taps lie in the padding
  for (const std::string& kernel : run.kernels()) {
    if (kernel == "onednn") continue;
    const std::vector<float> out = run.by(kernel, 1);
    for (std::size_t tap = 0; tap < 9; ++tap) {
      const bool padded = tap < 3 || tap % 3 == 0;
      ASSERT_TRUE(padded ? std::isnan(out[tap]) : std::isinf(out[tap]))
          << kernel << ", tap " << tap << ": " << out[tap];
    }
  }
}

// As in PyTorch, whose formula multiplies 0 by infinity there.
TEST(SpecialValues, TheSlopeOfGeluByTanhAtInfinityIsNan) {
  SpecialRun run("gelu:backward(f32[40], f32[40]; approximate=tanh)");
  run.inputs[0][3] = infinity;
  run.inputs[0][35] = -infinity;
  for (const std::string& kernel : run.kernels()) {
    const std::vector<float> out = run.by(kernel);
    for (std::size_t i = 0; i < out.size(); ++i) ASSERT_EQ(std::isnan(out[i]), i == 3 || i == 35) << kernel << " " << i;
  }
}

TEST(SpecialValues, AGradientOfNllLossReachesItsTargetAlone) {
  for (const double value : {nan, infinity}) {
    SpecialRun run("nll_loss:backward(f32[6,9], i64[6], f32[6]; reduction=none)");
    run.inputs[2][2] = value;  // its target is class 2
    for (const std::string& kernel : run.kernels()) {
      const std::vector<float> out = run.by(kernel);
      for (std::size_t i = 0; i < out.size(); ++i) {
        if (i == 2 * 9 + 2) {
          ASSERT_FALSE(std::isfinite(out[i])) << kernel;
        } else if (i % 9 != i / 9 % 5) {
          ASSERT_TRUE(same_bits(out[i], 0)) << kernel << " at " << i << ": " << out[i];
        }
      }
    }
  }
}

// The exponential of infinity less infinity.
TEST(SpecialValues, InfinitySpoilsItsLineOfASoftmax) {
  for (const char* text : {"softmax(f32[6,7])", "softmax(f32[6,9001])", "softmax(bf16[6,150])",
                           "log_softmax(f32[6,33])", "softmax(f32[6,5,1]; dim=1)",
                           "softmax:backward(f32[6,33], f32[6,33])", "cross_entropy(f32[6,33], i64[6]; reduction=none)",
                           "cross_entropy:backward(f32[6,33], i64[6], f32[6]; reduction=none)"}) {
    expect_spoils_its_line(text, infinity);
  }
}

TEST(SpecialValues, AKeyThatTakesNoPartMayBeNan) {
  for (const char* text : {"attention(f32[1,1,6,16], f32[1,1,40,16], f32[1,1,40,16], bool[40])",
                           "attention(bf16[1,1,6,16], bf16[1,1,300,16], bf16[1,1,300,16], bool[300])",
                           "attention(f32[1,1,2,16], f32[1,1,40,16], f32[1,1,40,16], bool[40])",
                           "attention(f32[1,1,6,16], f32[1,1,40,16], f32[1,1,40,16]; causal=true)"}) {
    SpecialRun clean(text);
    const bool causal = clean.inputs.size() == 3;
    if (!causal) clean.inputs[3][17] = 0;
    SpecialRun spoilt = clean;
    spoilt.inputs[1][17 * 16 + 3] = nan;
    for (const std::string& kernel : clean.kernels()) {
      const std::vector<float> before = clean.by(kernel), after = spoilt.by(kernel);
      for (std::size_t i = 0; i < after.size(); ++i) {
        ASSERT_TRUE(same_bits(after[i], before[i])) << kernel << " on " << text << ": " << i;
      }
    }
  }
}

// A mask of floats is added: NaN less infinity is NaN.
TEST(SpecialValues, AMaskOfFloatsHidesNoNan) {
  for (const char* text : {"attention(f32[1,1,6,16], f32[1,1,40,16], f32[1,1,40,16], f32[40])",
                           "attention(bf16[1,1,6,16], bf16[1,1,300,16], bf16[1,1,300,16], bf16[300])",
                           "attention(f32[1,1,2,16], f32[1,1,40,16], f32[1,1,40,16], f32[40])"}) {
    SpecialRun run(text);
    for (double& mask : run.inputs[3]) mask = 0;
    run.inputs[3][17] = -infinity;
    run.inputs[1][17 * 16 + 3] = nan;
    for (const std::string& kernel : run.kernels()) {
      for (const float value : run.by(kernel)) ASSERT_TRUE(std::isnan(value)) << kernel << " on " << text;
    }
  }
}

// Without it winograd may run, whose tiles mix up to 6x6 of them.
TEST(SpecialValues, UnderDeterministicANanOfAnImageReachesNoWindowButItsOwn) {
  const SpecialRun clean("conv2d(f32[1,16,20,20], f32[8,16,3,3]; padding=1,1) deterministic");
  SpecialRun spoilt = clean;
  spoilt.inputs[0][3 * 400 + 7 * 20 + 9] = nan;
  ASSERT_GE(clean.kernels().size(), 3u);
  for (const std::string& kernel : clean.kernels()) {
    const std::vector<float> before = clean.by(kernel), after = spoilt.by(kernel);
    for (int i = 0; i < 8 * 400; ++i) {
      const bool meets = std::abs(i % 400 / 20 - 7) <= 1 && std::abs(i % 20 - 9) <= 1;
      const auto at = static_cast<std::size_t>(i);
      ASSERT_TRUE(meets ? std::isnan(after[at]) : same_bits(after[at], before[at])) << kernel << ": " << i;
    }
  }
}

// The product is a zero of some sign, so that the bias alone reaches the activation.
TEST(SpecialValues, ReluAfterAProductIsTheMaximumWithPlusZero) {
  const double special[] = {-0.0, 0.0, nan, infinity, -infinity, 1, -1, -0x1p-100, 0x1p-100, 3};
  for (const char* text : {"linear(f32[1,300], f32[260,300], f32[260]; activation=relu)",
                           "linear(f32[9,20], f32[33,20], f32[33]; activation=relu)",
                           "linear(f32[70,96], f32[80,96], f32[80]; activation=relu)",
                           "linear(bf16[70,96], bf16[80,96], bf16[80]; activation=relu)",
                           "linear(f16[70,96], f16[80,96], f16[80]; activation=relu)",
                           "linear(f64[7,9], f64[30,9], f64[30]; activation=relu)"}) {
    SpecialRun run(text);
    for (double& x : run.inputs[0]) x = -0.0;
    Values& bias = run.inputs[2];
    for (std::size_t i = 0; i < bias.size(); ++i)
      bias[i] = oracle::rounded(run.problem.inputs[2].dtype, special[i % 10]);
    for (const std::string& kernel : run.kernels()) {
      const std::vector<float> out = run.by(kernel);
      for (std::size_t i = 0; i < out.size(); ++i) {
        const auto b = static_cast<float>(bias[i % bias.size()]);
        ASSERT_TRUE(same_bits(out[i], b <= 0 ? 0 : b)) << kernel << " on " << text << ": " << out[i] << " of " << b;
      }
    }
  }
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
