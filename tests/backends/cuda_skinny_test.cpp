#include <algorithm>
#include <set>

#include "backends/cuda_fixture.h"

namespace xpuruntime::cuda_tests {
namespace {

using CudaSkinny = CudaTest;

double activated(std::string_view activation, double x) {
  if (activation == "relu") return std::max(x, 0.0);
  if (activation == "gelu") return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
  return activation == "silu" ? x / (1 + std::exp(-x)) : x;
}

/// matmul of two matrices or linear, by the definition.
class Expected {
 public:
  Expected(Launch& launch, const Problem& problem)
      : problem_(problem), a_(launch.input(0).values()), b_(launch.input(1).values()) {
    const Dims& weight = problem.inputs[1].shape;
    linear_ = problem.op == OpId::linear;
    along_k_ = linear_ || problem.attributes.boolean("transpose_b");
    n_ = static_cast<std::size_t>(weight[along_k_ ? 0 : 1]);
    k_ = static_cast<std::size_t>(weight[along_k_ ? 1 : 0]);
    if (problem.inputs.size() > 2) c_ = launch.input(2).values();
    alpha_ = linear_ ? 1 : problem.attributes.real("alpha");
    beta_ = linear_ ? 1 : problem.attributes.real("beta");
  }

  std::size_t columns() const { return n_; }

  /// The value, and how far from it float32 sums may end.
  std::pair<double, double> at(std::size_t row, std::size_t column) const {
    double sum = 0, magnitude = 0;
    for (std::size_t i = 0; i < k_; ++i) {
      const double term = a_[row * k_ + i] * b_[along_k_ ? column * k_ + i : i * n_ + column];
      sum += term;
      magnitude += std::fabs(term);
    }
    const double added = c_.empty() ? 0 : beta_ * c_[c_.size() == n_ ? column : row * n_ + column];
    const double value = alpha_ * sum + added;
    const double slack = 4e-5 * std::fabs(alpha_) * magnitude + 1e-6 * (std::fabs(value) + std::fabs(added));
    if (!linear_) return {value, slack};
    return {activated(problem_.attributes.choice("activation"), value), 1.2 * slack};
  }

 private:
  const Problem& problem_;
  std::vector<double> a_, b_, c_;
  bool linear_ = false, along_k_ = false;
  std::size_t n_ = 0, k_ = 0;
  double alpha_ = 1, beta_ = 1;
};

/// Runs it twice by one plan, compares the outputs with the definition, and the two runs with each other bit by bit.
void expect_right(const std::string& text, std::mt19937_64& random, const std::string& token = {}) {
  SCOPED_TRACE(text + " " + token);
  const Problem problem = problem_of(text);
  Launch launch(problem, "skinny", 0, token);
  ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
  launch.fill(random);
  const Status status = launch.run();
  ASSERT_TRUE(status.ok()) << status.message() << " " << launch.plan().token();
  EXPECT_TRUE(launch.output().margins_untouched());
  const std::vector<double> values = launch.output().values();
  const Expected expected(launch, problem);
  const double rounding = oracle::half_unit(problem.outputs[0].dtype);
  int wrong = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto [value, slack] = expected.at(i / expected.columns(), i % expected.columns());
    if (std::fabs(values[i] - value) <= slack + 1.01 * rounding * std::fabs(value) + 0x1p-9 * rounding) continue;
    if (++wrong <= 3) ADD_FAILURE() << "element " << i << " is " << values[i] << ", not " << value;
  }
  EXPECT_EQ(wrong, 0) << launch.plan().token();
  ASSERT_TRUE(launch.queue().ok() && driver().synchronize(0, {}).ok() && launch.output().download().ok());
  EXPECT_EQ(launch.output().values(), values) << launch.plan().token();
}

std::string matmul_text(const std::string& dtype, int m, int n, int k, bool along_k) {
  const std::string rows = std::to_string(m), columns = std::to_string(n), sums = std::to_string(k);
  const std::string b = along_k ? columns + "," + sums : sums + "," + columns;
  return "matmul(" + dtype + "[" + rows + "," + sums + "], " + dtype + "[" + b + "]" +
         (along_k ? "; transpose_b=true)" : ")");
}

std::vector<std::string> variants_of(const std::string& text, const DeviceProfile& profile) {
  const Problem problem = problem_of(text);
  return kernel(problem.op, "skinny").variants(problem, {Device{DeviceType::nvidia, 0}, profile, driver()});
}

TEST_F(CudaSkinny, MultipliesEverySmallShape) {
  SCOPED_TRACE(seed_text());
  for (const int m : {1, 2, 5, 8, 9, 16, 17, 31, 33, 48, 63, 64}) {
    for (const int n : {1, 7, 8, 16, 33, 63, 64, 65}) {
      for (const int k : {1, 7, 8, 16, 33, 63, 64, 65}) {
        const std::string dtype = (m + n + k) % 2 == 0 ? "bf16" : "f16";
        for (const bool along_k : {true, false}) {
          expect_right(matmul_text(dtype, m, n, k, along_k), random());
          if (m <= 16) expect_right(matmul_text("f32", m, n, k, along_k), random());
        }
      }
    }
    if (HasFailure()) return;
  }
}

TEST_F(CudaSkinny, MultipliesLargeAndOddShapes) {
  SCOPED_TRACE(seed_text());
  constexpr int extents[][2] = {{777, 555}, {1000, 2048}, {1023, 4097}, {4097, 1023},
                                {64, 4096}, {4096, 64},   {7, 4097}};
  for (const auto& [n, k] : extents) {
    for (const int m : {1, 5, 16, 33, 64}) {
      expect_right(matmul_text("bf16", m, n, k, true), random());
      expect_right(matmul_text("f16", m, n, k, false), random());
    }
  }
}

TEST_F(CudaSkinny, TakesStridesAndOffsets) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(bf16[33,520]{528,1}, bf16[520,200]{208,1})",
           "matmul(bf16[33,520]{528,1}, bf16[520,200]{1,528})",
           "matmul(f16[33,520]{521,1}, f16[520,200]{1,523})",
           "matmul(f16[33,520]{521,1}, f16[520,200]{201,1})",
           "matmul(bf16[64,512]/2, bf16[512,80]/2)",
           "matmul(bf16[64,512]/4, bf16[80,512]/8; transpose_b=true)",
           "matmul(bf16[20,64]{1,24}, bf16[64,40]{1,72})",
           "matmul(bf16[20,64]{1,24}, bf16[64,40])",
           "matmul(bf16[50,64], bf16[40,64]; transpose_b=true) -> bf16[50,40]{1,51}",
           "matmul(f16[50,64], f16[40,64]; transpose_b=true) -> f32[50,40]{44,1}",
           "matmul(bf16[24,512]{0,1}, bf16[512,96])",
           "matmul(bf16[24,512], bf16[512,96]{1,0})",
           "linear(bf16[2,3,4,512], bf16[96,512])",
           "linear(bf16[7,512]/2, bf16[96,512]{640,1}, bf16[96]{3})",
       }) {
    expect_right(text, random());
  }
}

TEST_F(CudaSkinny, AddsTheBiasAndAppliesTheActivationBeforeTheOneRounding) {
  SCOPED_TRACE(seed_text());
  for (const std::string activation : {"none", "relu", "gelu", "silu"}) {
    for (const std::string m : {"1", "8", "30", "64"}) {
      for (const std::string dtype : {"bf16", "f16"}) {
        const std::string open = "linear(" + dtype + "[" + m + ",", close = "; activation=" + activation + ")";
        expect_right(open + "96], " + dtype + "[72,96]" + close, random());
        expect_right(open + "96], " + dtype + "[72,96], " + dtype + "[72]" + close, random());
        expect_right(open + "4104], " + dtype + "[1032,4104], f32[1032]" + close, random());
        expect_right(open + "97], " + dtype + "[71,97], " + dtype + "[71]" + close, random());
      }
    }
    expect_right("linear(f32[9,40], f32[33,40], f32[33]; activation=" + activation + ")", random());
    expect_right("linear(f32[9,40]{1,9}, f32[33,40], bf16[33]; activation=" + activation + ")", random());
  }
}

TEST_F(CudaSkinny, ScalesTheSumAndAddsC) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(bf16[20,64], bf16[64,40], bf16[20,40]; alpha=0.5 beta=-2)",
           "matmul(bf16[20,64], bf16[64,40], bf16[40]; beta=3)",
           "matmul(bf16[20,64], bf16[64,40], f32[20,40]{1,20}; alpha=-1)",
           "matmul(f16[3,65], f16[33,65], f16[3,33]; transpose_b=true alpha=2)",
           "matmul(f32[3,65], f32[33,65], f32[33]; transpose_b=true alpha=2 beta=0.25)",
           "matmul(f32[3,65], f32[65,33]; alpha=2)",
       }) {
    expect_right(text, random());
  }
}

// A c that beta takes away is not read: NaN in it stays there.
TEST_F(CudaSkinny, LeavesCAloneWhereBetaIsZero) {
  const Problem problem = problem_of("matmul(bf16[4,64], bf16[64,40], bf16[4,40]; beta=0)");
  Launch launch(problem, "skinny");
  launch.fill(random());
  launch.input(2).set({1, 1}, std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(launch.run().ok());
  EXPECT_FALSE(std::isnan(launch.output().at({1, 1})));
}

// Columns that do not begin on 16 bytes are read together with elements of their neighbours, which do not count.
TEST_F(CudaSkinny, KeepsNanOfOneColumnOutOfTheOthers) {
  for (const std::string m : {"1", "4", "33"}) {
    const Problem problem = problem_of("linear(bf16[" + m + ",131], bf16[40,131])");
    for (const std::string& token : variants_of("linear(bf16[" + m + ",131], bf16[40,131])", profile())) {
      SCOPED_TRACE(m + " " + token);
      Launch launch(problem, "skinny", 0, token);
      launch.fill(random());
      for (const std::int64_t k : {0, 130}) launch.input(1).set({17, k}, std::numeric_limits<double>::quiet_NaN());
      ASSERT_TRUE(launch.run().ok());
      for (std::int64_t column = 0; column < 40; ++column) {
        EXPECT_EQ(std::isnan(launch.output().at({0, column})), column == 17) << column;
      }
    }
  }
}

TEST_F(CudaSkinny, MakesEveryPlanThatItListsByItsToken) {
  SCOPED_TRACE(seed_text());
  std::set<std::string> paths;
  for (const int m : {1, 8, 16, 24, 64}) {
    for (const bool along_k : {true, false}) {
      for (const std::string& text :
           {matmul_text("bf16", m, 264, 2056, along_k), matmul_text("f16", m, 1032, 264, along_k),
            matmul_text("bf16", m, 77, 555, along_k)}) {
        const std::vector<std::string> tokens = variants_of(text, profile());
        EXPECT_LE(tokens.size(), 8u);
        EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
        for (const std::string& token : tokens) {
          paths.insert(token.substr(0, token.find(' ')));
          expect_right(text, random(), token);
        }
      }
    }
  }
  EXPECT_EQ(paths, (std::set<std::string>{"path=columns", "path=held", "path=lanes", "path=tiles"}));
  EXPECT_THROW(Launch(problem_of(matmul_text("bf16", 1, 64, 64, true)), "skinny", 0, "path=tiles tile=48 split=1"),
               Error);
}

// Blocks go through several tiles one after the other.
TEST_F(CudaSkinny, GoesThroughManyTiles) {
  SCOPED_TRACE(seed_text());
  constexpr int extents[][3] = {{1, 40008, 72}, {64, 40008, 72}, {24, 9000, 528}};
  for (const auto& [m, n, k] : extents) {
    for (const bool along_k : {true, false}) {
      const std::string text = matmul_text("bf16", m, n, k, along_k);
      for (const std::string& token : variants_of(text, profile())) expect_right(text, random(), token);
    }
  }
}

/// Choices that can be asked for without a GPU.
class SkinnyChoices : public testing::Test {
 protected:
  void SetUp() override {
    if (backend().kernels().empty()) GTEST_SKIP() << driver().why_absent();
    h200_ = DeviceProfile::load(XRT_TEST_DATA "/profiles/h200.json");
  }
  std::string first(const std::string& text) const {
    const std::string token = variants_of(text, h200_).at(0);
    return token.substr(0, token.find(' '));
  }

  DeviceProfile h200_;
};

TEST_F(SkinnyChoices, HoldTheInputWhereItFitsIntoRegisters) {
  EXPECT_EQ(first("linear(bf16[1,4096], bf16[28672,4096])"), "path=lanes");
  EXPECT_EQ(first("linear(bf16[1,14336], bf16[4096,14336])"), "path=lanes");
  EXPECT_EQ(first("linear(bf16[1,4097], bf16[1023,4097])"), "path=lanes");
  EXPECT_EQ(first("linear(bf16[4,2048], bf16[1000,2048])"), "path=tiles");
  EXPECT_EQ(first("linear(f16[16,4096], f16[64,4096])"), "path=tiles");
  EXPECT_EQ(first("linear(f16[64,4096], f16[64,4096])"), "path=held");
  EXPECT_EQ(first("linear(bf16[64,555], bf16[777,555])"), "path=tiles");
  EXPECT_EQ(first("linear(bf16[4,14336], bf16[4096,14336])"), "path=tiles");
  EXPECT_EQ(first("matmul(bf16[64,4096], bf16[4096,28672])"), "path=tiles");
  EXPECT_EQ(first("matmul(bf16[4,2048], bf16[2048,1000])"), "path=tiles");
  EXPECT_EQ(first("linear(bf16[8,7], bf16[64,7])"), "path=dots");  // vectors would reach behind the tensors
  EXPECT_EQ(first("matmul(bf16[8,64], bf16[64,7])"), "path=columns");
  EXPECT_EQ(first("linear(f32[1,2048], f32[1000,2048])"), "path=dots");
  EXPECT_EQ(first("matmul(f32[1,2048], f32[2048,1000])"), "path=columns");
  EXPECT_EQ(first("matmul(bf16[64,2048]{1,64}, bf16[2048,1000])"), "path=columns");
}

// Clusters are Hopper's, and smaller devices have less shared memory.
TEST_F(SkinnyChoices, KeepToWhatTheDeviceHas) {
  const std::string text = "matmul(bf16[64,4096], bf16[4096,4096])";
  EXPECT_NE(variants_of(text, h200_).at(0).find("split="), std::string::npos);
  h200_.compute_capability_major = 8;
  for (const std::string& token : variants_of(text, h200_)) EXPECT_NE(token.find("split=1"), std::string::npos);
  h200_.local_memory_bytes = 99 << 10;
  for (const std::string& token : variants_of(text, h200_))
    EXPECT_NE(token.find("warps=4"), std::string::npos) << token;
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
