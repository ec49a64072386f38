// What the shared cases are too small for: many blocks of keys, and scores that rise and fall between them.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// A problem, its tensors in plain memory, and a run of one kernel on them.
class AttentionRun {
 public:
  explicit AttentionRun(const std::string& text) : problem_(parse_problem(text)) {
    for (const TensorSpec& spec : problem_.inputs) inputs_.push_back(Tensor::empty(spec.dtype, spec.shape));
    for (const TensorSpec& spec : problem_.outputs) outputs_.push_back(Tensor::empty(spec.dtype, spec.shape));
  }

  float* input(std::size_t i) { return inputs_[i].as<float>(); }
  bool* mask() { return inputs_[3].as<bool>(); }
  std::int64_t count(std::size_t i) const { return element_count(inputs_[i].spec()); }
  std::int32_t* indices(std::size_t i) { return inputs_[i].as<std::int32_t>(); }
  float out(std::int64_t i) const { return outputs_[0].as<float>()[i]; }
  float lse(std::int64_t i) const { return outputs_[1].as<float>()[i]; }

  void with(const Kernel& kernel) {
    const auto inputs = oracle::pointers(inputs_), outputs = oracle::pointers(outputs_);
    const auto bytes = static_cast<std::int64_t>(kernel.workspace_bytes(problem_, cpu_profile()));
    const Tensor workspace = Tensor::empty(DataType::uint8, {bytes});
    const PrepareContext context{problem_.device, cpu_profile(), Runtime::global().devices().driver(problem_.device)};
    const Status status = kernel.prepare(problem_, context)->run({inputs, outputs, workspace.data(), {}});
    EXPECT_TRUE(status.ok()) << text_of(kernel, problem_) << ": " << status.message();
  }

  /// Calls `check(kernel)` after a run of each kernel that takes the problem, and counts them.
  template <class Check>
  int with_each(const Check& check) {
    int ran = 0;
    for (const auto& kernel : cpu_kernels(OpId::attention)) {
      if (!kernel->supports(problem_, cpu_profile()).supported) continue;
      with(*kernel);
      check(text_of(*kernel, problem_));
      ++ran;
    }
    return ran;
  }

 private:
  Problem problem_;
  std::vector<Tensor> inputs_;
  std::vector<Tensor> outputs_;
};

/// One query of size 1 against keys whose scores are given; the values count up.
void give_scores(AttentionRun& run, float (*score)(std::int64_t)) {
  for (std::int64_t i = 0; i < run.count(0); ++i) run.input(0)[i] = 1;
  for (std::int64_t j = 0; j < run.count(1); ++j) run.input(1)[j] = score(j);
  for (std::int64_t j = 0; j < run.count(2); ++j) run.input(2)[j] = static_cast<float>(j % 7);
}

double expected(float (*score)(std::int64_t), std::int64_t keys) {
  double sum = 0, weights = 0;
  for (std::int64_t j = 0; j < keys; ++j) {
    const double weight = std::exp(static_cast<double>(score(j)) - 100);
    weights += weight;
    sum += weight * static_cast<double>(j % 7);
  }
  return sum / weights;
}

// The highest score so far rises in every block, so that all earlier sums are rescaled each time.
TEST(CpuAttention, FollowsScoresThatRiseOverManyBlocksOfKeys) {
  const auto rising = [](std::int64_t j) { return static_cast<float>(j) * 0x1p-7f; };
  AttentionRun run("attention(f32[1,1,1,1], f32[1,1,9000,1], f32[1,1,9000,1]; scale=1)");
  give_scores(run, rising);
  const int ran =
      run.with_each([&](const std::string& text) { EXPECT_NEAR(run.out(0), expected(rising, 9000), 1e-4) << text; });
  EXPECT_GE(ran, 4);
}

TEST(CpuAttention, ForgetsNothingWhenTheHighestScoreIsTheFirst) {
  const auto falling = [](std::int64_t j) { return static_cast<float>(-j) * 0x1p-12f; };
  AttentionRun run("attention(f32[1,1,1,1], f32[1,1,9000,1], f32[1,1,9000,1]; scale=1)");
  give_scores(run, falling);
  run.with_each([&](const std::string& text) { EXPECT_NEAR(run.out(0), expected(falling, 9000), 1e-4) << text; });
}

// Scores this far apart overflow or vanish in f32 unless the highest is taken off first.
TEST(CpuAttention, TakesScoresWhoseExponentialIsNoFloat) {
  const auto far = [](std::int64_t j) { return j == 555 ? 3000.0f : -3000.0f; };
  AttentionRun run("attention(f32[1,1,1,1], f32[1,1,700,1], f32[1,1,700,1]; scale=1)");
  give_scores(run, far);
  run.with_each([&](const std::string& text) { EXPECT_EQ(run.out(0), 555 % 7) << text; });
}

// The highest score times log2(e) is rounded by more than all weights are apart.
TEST(CpuAttention, TakesScoresWhoseRoundingIsMoreThanTheyAreApart) {
  for (const float size : {1e9f, 2.5e9f, 1e20f, 2e38f, std::numeric_limits<float>::max()}) {
    for (const char* scale : {"1", "0.70710678"}) {
      AttentionRun run("attention(f32[1,1,2,1], f32[1,1,700,1], f32[1,1,700,1]; scale=" + std::string(scale) + ")");
      give_scores(run, [](std::int64_t j) { return j == 555 ? 1.0f : j % 3 == 0 ? -1.0f : 0.5f; });
      for (std::int64_t i = 0; i < run.count(0); ++i) run.input(0)[i] = size;
      run.with_each([&](const std::string& text) {
        EXPECT_EQ(run.out(0), 555 % 7) << text << " " << size;
        EXPECT_EQ(run.out(1), 555 % 7) << text << " " << size;
      });
    }
  }
}

// As programs pad: every key of a row has the same very low number added, and so all count alike.
TEST(CpuAttention, AddsMasksOfAnySize) {
  for (const float low : {-1e9f, -1e11f, -3e20f, -1e30f, -2.5e38f, std::numeric_limits<float>::lowest()}) {
    AttentionRun run("attention(f32[1,1,2,1], f32[1,1,70,1], f32[1,1,70,1], f32[2,70]; scale=1)");
    give_scores(run, [](std::int64_t) { return 1.0f; });
    for (std::int64_t j = 0; j < 140; ++j) run.input(3)[j] = j < 70 || j == 75 ? low : 0.0f;
    double all = 0, most = 0;
    for (std::int64_t j = 0; j < 70; ++j) all += static_cast<double>(j % 7) / 70;
    for (std::int64_t j = 0; j < 70; ++j) most += j == 5 ? 0 : static_cast<double>(j % 7) / 69;
    run.with_each([&](const std::string& text) {
      EXPECT_NEAR(run.out(0), all, 1e-5) << text << " " << low;
      EXPECT_NEAR(run.out(1), most, 1e-5) << text << " " << low;
    });
  }
}

TEST(CpuAttention, GivesZerosToAQueryWhoseMaskLeavesNoKey) {
  AttentionRun run("attention(f32[1,1,2,1], f32[1,1,300,1], f32[1,1,300,1], bool[2,300]; scale=1)");
  give_scores(run, [](std::int64_t) { return 1.0f; });
  for (std::int64_t j = 0; j < 600; ++j) run.mask()[j] = j >= 300 && j % 300 == 299;  // the second query has the last
  run.with_each([&](const std::string& text) {
    EXPECT_EQ(run.out(0), 0) << text;
    EXPECT_EQ(run.out(1), 299 % 7) << text;
  });
}

// What lies behind the end of a sequence is memory that nobody has written yet, or another sequence's page.
TEST(CpuAttention, ReadsNoKeyPastTheLengthOfItsSequence) {
  AttentionRun run("attention(f32[3,1,1,1], f32[3,1,700,1], f32[3,1,700,1], none, i32[3]; scale=1 lse=true)");
  const std::int32_t lengths[] = {300, 0, 700};
  give_scores(run, [](std::int64_t) { return 0.0f; });
  for (std::int64_t i = 0; i < 2100; ++i) {
    run.indices(4)[i / 700] = lengths[i / 700];
    if (i % 700 >= lengths[i / 700]) run.input(1)[i] = run.input(2)[i] = std::nanf("");
  }
  double mean = 0;
  for (std::int64_t j = 0; j < 300; ++j) mean += static_cast<double>(j % 7) / 300;
  const int ran = run.with_each([&](const std::string& text) {
    EXPECT_NEAR(run.out(0), mean, 1e-5) << text;
    EXPECT_NEAR(run.lse(0), std::log(300), 1e-5) << text;
    EXPECT_EQ(run.out(1), 0) << text;
    EXPECT_EQ(run.lse(1), -infinity) << text;
    EXPECT_NEAR(run.lse(2), std::log(700), 1e-5) << text;
  });
  EXPECT_GE(ran, 3);
}

TEST(CpuAttention, AsksForNoPageThatASequenceDoesNotReach) {
  AttentionRun run("attention(f32[2,1,1,1], f32[4,3,1,1], f32[4,3,1,1], none, i32[2], i32[2,4]; scale=1)");
  give_scores(run, [](std::int64_t) { return 0.0f; });
  const std::int32_t table[] = {3, 0, -1, 99, 2, -1, -1, -1};
  std::copy(std::begin(table), std::end(table), run.indices(5));
  run.indices(4)[0] = 5;  // the three keys of page 3, whose values are 9, 10 and 11 modulo 7, and two of page 0
  run.indices(4)[1] = 1;
  const int ran = run.with_each([&](const std::string& text) {
    EXPECT_NEAR(run.out(0), (2 + 3 + 4 + 0 + 1) / 5.0, 1e-6) << text;
    EXPECT_EQ(run.out(1), 6) << text;
  });
  EXPECT_EQ(ran, 2);
}

TEST(CpuAttention, LetsANanOfAKeyReachTheOutput) {
  AttentionRun run("attention(f32[1,1,1,1], f32[1,1,300,1], f32[1,1,300,1]; scale=1)");
  give_scores(run, [](std::int64_t j) { return j == 40 ? std::nanf("") : static_cast<float>(j); });
  run.with_each([&](const std::string& text) { EXPECT_TRUE(std::isnan(run.out(0))) << text; });
  give_scores(run, [](std::int64_t j) { return j == 40 ? infinity : 0.0f; });
  run.with_each([&](const std::string& text) { EXPECT_TRUE(std::isnan(run.out(0))) << text; });
}

std::string refusal(std::string_view name, const std::string& text, const DeviceProfile& profile) {
  for (const auto& kernel : cpu_kernels(OpId::attention)) {
    if (kernel->name() == name) return kernel->supports(parse_problem(text), profile).reason;
  }
  return "there is no such kernel";
}

TEST(CpuAttention, SaysWhyAKernelDoesNotTakeAProblem) {
  const std::string bf16 = "attention(bf16[1,2,5,8], bf16[1,2,5,8], bf16[1,2,5,8])";
  const std::string f64 = "attention(f64[1,2,5,8], f64[1,2,5,8], f64[1,2,5,8])";
  DeviceProfile plain = cpu_profile();
  plain.cpu_features = {"avx2"};
  EXPECT_EQ(refusal("tiled_amx", bf16, plain), "the CPU has no amx_bf16");
  EXPECT_EQ(refusal("single_query", bf16, plain), "queries = 5 is over 4");
  for (const char* scale : {"1e-46", "-1e-300", "1e39"}) {
    const std::string text = "attention(f32[1,2,5,8], f32[1,2,5,8], f32[1,2,5,8]; scale=" + std::string(scale) + ")";
    EXPECT_EQ(refusal("tiled", text, plain), "the scale is outside the range of f32, which this kernel computes in");
  }
  EXPECT_EQ(refusal("tiled", f64, plain), "input 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(refusal("tiled", "attention(f32[1,1,2,4], f32[1,1,2,4]{8,8,1,2}, f32[1,1,2,4])", plain),
            "the rows of input 1 are not contiguous");
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
