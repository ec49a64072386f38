// Products by NVIDIA's libraries and by the reference on CUDA: what follows the sums, every dtype, odd layouts. The
// answers are the oracle's, in float64.

#include <thread>

#include "backends/cuda_fixture.h"

namespace xpuruntime::cuda_tests {
namespace {

class CudaLinear : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (!IsSkipped() && !profile().library_versions.contains("cublasLt"))
      GTEST_SKIP() << "libcublasLt is not installed";
  }
};

/// Tensor cores add up products of 8-bit floats with fewer bits than f32 has: 2^9 times its error is allowed.
double allowance(const Problem& problem, const std::string& kernel) {
  const DataType dtype = problem.inputs[0].dtype;
  const bool eight_bits = dtype == DataType::float8_e4m3 || dtype == DataType::float8_e5m2;
  return kernel != "reference" && eight_bits ? 512 : 1;
}

/// Empty, or the first value that is wrong.
std::string mistake(const Problem& problem, Launch& launch, const std::string& kernel) {
  std::vector<oracle::Values> inputs;
  for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs.push_back(launch.input(i).values());
  std::vector<oracle::Answer> answers = oracle::solve(problem, inputs);
  for (double& slack : answers[0].slack) slack *= allowance(problem, kernel);
  return oracle::compare_output(problem, 0, answers[0], launch.output().values(), kernel);
}

void expect_right(const std::string& text, const std::string& kernel, std::mt19937_64& random,
                  const std::string& token = {}) {
  SCOPED_TRACE(kernel + ": " + text + " " + token);
  const Problem problem = problem_of(text);
  try {
    Launch launch(problem, kernel, 0, token);
    ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
    launch.fill(random);
    const Status status = launch.run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(launch.output().margins_untouched());
    EXPECT_EQ(mistake(problem, launch, kernel), "") << launch.plan().token();
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

TEST_F(CudaLinear, AddsTheBiasAndAppliesTheActivation) {
  SCOPED_TRACE(seed_text());
  for (const std::string dtype : {"f32", "f16", "bf16", "f64", "tf32"}) {
    for (const std::string activation : {"none", "relu", "gelu", "silu"}) {
      for (const std::string text :
           {"linear(T[64,256], T[128,256], T[128]", "linear(T[65,129], T[33,129], T[33]", "linear(T[7,9], T[7,9]",
            "linear(T[1,64], T[96,64], T[96]", "linear(T[33,7], T[1,7], T[1]", "linear(T[9,1], T[8,1], T[8]",
            "linear(T[5], T[3,5], T[3]", "linear(T[2,3,16], T[7,16], T[7]", "linear(T[127,1024], T[127,1024], T[127]",
            "linear(T[100,1137], T[305,1137], T[305]"}) {
        const std::string problem = with_dtype(text, dtype) + "; activation=" + activation + ")";
        expect_right(problem, "cublasLt", random());
        expect_right(problem, "reference", random());
      }
    }
  }
}

TEST_F(CudaLinear, TakesStridesOffsetsAndOtherDtypes) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "linear(T[4,16]{1,4}, T[8,16]{1,8}, T[8]; activation=relu)",
           "linear(T[9,33]{40,1}, T[17,33]{48,1}, T[17]{2}; activation=relu) -> T[9,17]{20,1}",
           "linear(T[9,33], T[17,33], T[17]; activation=gelu) -> T[9,17]{1,11}",
           "linear(T[9,32], T[16,32], T[16]; activation=silu) -> T[9,16]{64,2}",
           "linear(T[2,8,16]{256,16,1}, T[24,16], T[24])",
           "linear(T[2,8,16]{256,16,1}, T[24,16], T[24]; activation=gelu)",
           "linear(T[17,65]/4, T[33,65]/4, T[33]/4; activation=relu) -> T[17,33]/4",
           "linear(T[17,64]/4, T[32,64]/8, T[32]/4; activation=silu) -> T[17,32]/4",
           "linear(T[9,33], T[17,33], f32[17]; activation=relu) -> f32[9,17]",
           "linear(T[9,33], T[17,33], f32[17]; activation=gelu)",
           "linear(T[9,33], T[17,33], T[17]; activation=gelu) -> f32[9,17]",
           "linear(T[9,33], T[17,33], T[17]) -> bf16[9,17]",
       }) {
    for (const std::string dtype : {"f32", "f16", "bf16"}) {
      expect_right(with_dtype(text, dtype), "cublasLt", random());
      expect_right(with_dtype(text, dtype), "reference", random());
    }
  }
}

TEST_F(CudaLinear, ScalesAndAddsWhatMatmulIsGiven) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(T[17,33], T[33,20]; alpha=0.5)",
           "matmul(T[17,33], T[33,20]; alpha=0)",
           "matmul(T[17,33], T[33,20], T[17,20]; alpha=-2 beta=0.25)",
           "matmul(T[17,33], T[33,20], T[17,20]; beta=0)",
           "matmul(T[17,33], T[33,20], T[20])",
           "matmul(T[17,33], T[33,20], T[20]; alpha=3 beta=2)",
           "matmul(T[64,32], T[32,48], T[48]; alpha=3)",
           "matmul(T[17,33], T[20,33], T[17,1]; transpose_b=true beta=3)",
           "matmul(T[17,33], T[33,20], T[17,20]{1,17}; alpha=0.1)",
           "matmul(T[17,33], T[33,20], T[17,20]{40,1}; alpha=0.1) -> T[17,20]{24,1}",
           "matmul(T[17,33], T[33,20], T[17,20]{1,19}; alpha=0.1) -> T[17,20]{1,18}",
           "matmul(T[3,9,16], T[3,16,40], T[3,9,40]; alpha=0.3 beta=-1)",
           "matmul(T[3,9,16], T[3,16,40], T[9,40])",
           "matmul(T[3,9,16], T[3,16,40], T[3,1,40]; alpha=0.3)",
           "matmul(T[5,7,16], T[16,9], T[5,1,9])",
           "matmul(T[5,7,16], T[16,9], T[9])",
           "matmul(T[5], T[5,6], T[6]; beta=-1)",
           "matmul(T[4,5], T[5], T[4])",
           "matmul(T[9], T[9], T[]; alpha=2)",
           "matmul(T[17,33], T[33,20], none, f32[], f32[1])",
           "matmul(T[17,33], T[33,20], T[20], f32[17], f32[20]{2}; alpha=2 beta=0.5)",
           "matmul(T[2,9,16], T[2,16,7], T[9,7], f32[9], f32[1]; beta=0.5)",
           "matmul(T[4,5], T[5], none, f32[4])",
           "matmul(T[17,33]/8, T[33,20]/8, T[17,20]/8; alpha=0.5) -> T[17,20]/8",
       }) {
    for (const std::string dtype : {"f32", "f16", "bf16", "f64"}) {
      expect_right(with_dtype(text, dtype), "cublasLt", random());
      expect_right(with_dtype(text, dtype), "reference", random());
    }
  }
  for (const std::string text :
       {"matmul(bf16[9,33], bf16[33,20], f32[20])", "matmul(f32[9,33], f32[33,20], bf16[9,20]; alpha=2)"}) {
    expect_right(text, "cublasLt", random());
    expect_right(text, "reference", random());
  }
}

TEST_F(CudaLinear, MultipliesEightBitFloats) {
  if (profile().compute_capability_major * 10 + profile().compute_capability_minor < 89) {
    GTEST_SKIP() << "the device has no 8-bit floats";
  }
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(A[64,128], B[96,128]; transpose_b=true)",
           "matmul(A[7,64], B[16,64]; transpose_b=true) -> bf16[7,16]",
           "matmul(A[1,256], B[48,256]; transpose_b=true) -> f16[1,48]",
           "matmul(A[33,64], B[64,32]{1,80}; alpha=2) -> f32[33,32]{48,1}",
           "matmul(A[64,128], B[96,128], none, f32[1], f32[]; transpose_b=true)",
           "matmul(A[64,128], B[96,128], none, f32[1], f32[1]; transpose_b=true) -> bf16[64,96]",
           "matmul(A[64,128], B[96,128], none, none, f32[1]; transpose_b=true alpha=-1) -> bf16[64,96]",
           "matmul(A[64,128], B[96,128], none, f32[64], f32[96]; transpose_b=true) -> bf16[64,96]",
           "matmul(A[64,128], B[96,128], bf16[96], f32[1], f32[96]; transpose_b=true) -> bf16[64,96]",
           "matmul(A[64,128], B[96,128], bf16[64,96], f32[1], f32[1]; transpose_b=true beta=2)",
           "matmul(A[64,128], B[96,128]; transpose_b=true) -> f8e4m3[64,96]",
           "matmul(A[3,32,64], B[3,48,64]; transpose_b=true)",
           "linear(A[33,64], B[48,64], bf16[48]; activation=relu)",
           "linear(A[33,64], B[48,64], f32[48]; activation=relu)",
           "linear(A[33,64], B[48,64], bf16[48]; activation=gelu)",
       }) {
    for (const char* pair : {"43", "45", "54"}) {
      std::string problem = text;
      problem.replace(problem.find('A'), 1, pair[0] == '4' ? "f8e4m3" : "f8e5m2");
      problem.replace(problem.find('B'), 1, pair[1] == '5' ? "f8e5m2" : "f8e4m3");
      expect_right(problem, "cublasLt", random());
      expect_right(problem, "reference", random());
    }
  }
}

TEST_F(CudaLinear, MultipliesIntegersExactly) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(i8[20,96], i8[40,96]; transpose_b=true)",
           "matmul(i8[1,4096], i8[64,4096]; transpose_b=true)",
           "matmul(i8[7,64], i8[64,36]{1,68})",
           "matmul(i8[3,20,32], i8[3,40,32]; transpose_b=true)",
           "matmul(i8[20,96], i8[40,96], i32[40]; transpose_b=true alpha=3 beta=-2)",
           "matmul(i8[20,96], i8[40,96], none, f32[20], f32[40]; transpose_b=true)",
           "matmul(i8[20,96], i8[40,96], bf16[40], f32[1], f32[40]; transpose_b=true beta=0.5) -> bf16[20,40]",
           "matmul(i8[20,96], i8[40,96]; transpose_b=true) -> f32[20,40]",
           "linear(i8[9,32], i8[16,32], i32[16]; activation=relu)",
       }) {
    expect_right(text, "cublasLt", random());
    expect_right(text, "reference", random());
  }
  for (const std::string text :
       {"matmul(i8[17,65], i8[65,33])", "matmul(i32[5,7], i32[7,3], i32[5,3]; alpha=-3)", "matmul(i64[5,7], i64[7,3])",
        "matmul(i32[5,7], f32[7,3])", "linear(i64[4,7], i64[5,7])", "matmul(i8[17,64], i8[64,32]) -> i64[17,32]"}) {
    expect_right(text, "reference", random());
  }
}

// An epilogue of the library's must not hide what the sums say.
TEST_F(CudaLinear, NaNGoesThroughReluAndAnAlphaOfZero) {
  for (const std::string kernel : {"cublasLt", "reference"}) {
    for (const std::string text : {"linear(f32[32,64], f32[48,64], f32[48]; activation=relu)",
                                   "linear(bf16[32,64], bf16[48,64]; activation=relu)",
                                   "linear(bf16[32,64], bf16[48,64], bf16[48]; activation=relu)",
                                   "matmul(f32[32,64], f32[48,64]; transpose_b=true alpha=0)"}) {
      SCOPED_TRACE(kernel + ": " + text);
      Launch launch(problem_of(text), kernel);
      launch.fill(random());
      launch.input(0).set({3, 5}, std::numeric_limits<double>::quiet_NaN());
      ASSERT_TRUE(launch.run().ok());
      EXPECT_TRUE(std::isnan(launch.output().at({3, 0})));
      EXPECT_FALSE(std::isnan(launch.output().at({2, 0})));
    }
  }
}

// The pointers of a bias and of scales are those of the call, though calls share a plan.
TEST_F(CudaLinear, CallsOfOnePlanKeepTheirOwnBias) {
  const Problem problem = problem_of("linear(bf16[33,64], bf16[48,64], bf16[48])");
  Launch first(problem, "cublasLt"), second(problem, "cublasLt");
  ASSERT_TRUE(first.verdict().supported) << first.verdict().reason;
  for (Launch* launch : {&first, &second}) {
    launch->fill(random());
    ASSERT_TRUE(launch->upload().ok());
  }
  const auto queue = [&](Launch& launch) {
    const Tensor* inputs[] = {&launch.input(0).tensor(), &launch.input(1).tensor(), &launch.input(2).tensor()};
    const Tensor* outputs[] = {&launch.output().tensor()};
    for (int i = 0; i < 100; ++i) ASSERT_TRUE(first.plan().run({inputs, outputs, first.workspace(), {}}).ok());
  };
  std::thread other([&] { queue(second); });
  queue(first);
  other.join();
  ASSERT_TRUE(driver().synchronize(0, {}).ok());
  for (Launch* launch : {&first, &second}) {
    ASSERT_TRUE(launch->output().download().ok());
    EXPECT_EQ(mistake(problem, *launch, "cublasLt"), "");
  }
}

TEST_F(CudaLinear, MakesEveryPlanThatItListsByItsToken) {
  SCOPED_TRACE(seed_text());
  const KernelSpec& lt = kernel(OpId::linear, "cublasLt");
  const PrepareContext context{Device{DeviceType::nvidia, 0}, profile(), driver()};
  for (const std::string text :
       {"linear(bf16[64,256], bf16[96,256], bf16[96]; activation=relu)",
        "linear(bf16[64,256], bf16[96,256], bf16[96]; activation=gelu)", "linear(f32[17,63], f32[31,63], f32[31])"}) {
    const Problem problem = problem_of(text);
    const std::vector<std::string> tokens = lt.variants(problem, context);
    ASSERT_FALSE(tokens.empty());
    for (const std::string& token : tokens) expect_right(text, "cublasLt", random(), token);
    EXPECT_THROW(Launch(problem, "cublasLt", 0, tokens[0] + "0"), Error);
  }
}

// Sums that do not fit the output's dtype wait in the workspace, which the limit counts.
TEST_F(CudaLinear, CountsTheSumsAmongItsWorkspace) {
  Problem problem = problem_of("linear(bf16[64,32], bf16[128,32]; activation=silu)");
  const KernelSpec& spec = kernel(OpId::linear, "cublasLt");
  constexpr std::uint64_t sums = 64 * 128 * 4;
  EXPECT_EQ(spec.workspace_bytes(problem, profile()), sums + (std::uint64_t{32} << 20));
  problem.limits.workspace_bytes = sums;
  EXPECT_EQ(spec.workspace_bytes(problem, profile()), sums);
  Launch launch(problem, "cublasLt");
  EXPECT_EQ(launch.plan().workspace_bytes(), sums);
  launch.fill(random());
  ASSERT_TRUE(launch.run().ok());
  EXPECT_EQ(mistake(problem, launch, "cublasLt"), "");
}

TEST_F(CudaLinear, GivesTheSameBitsEveryTime) {
  for (const std::string name : {"cublasLt", "cublas"}) {
    for (const std::string text : {"linear(bf16[65,8192], bf16[200,8192])",
                                   "linear(bf16[65,8192], bf16[200,8192], bf16[200]; activation=silu)"}) {
      Launch launch(problem_of(text), name);
      if (!launch.verdict().supported) continue;
      launch.fill(random());
      ASSERT_TRUE(launch.run().ok());
      const oracle::Values first = launch.output().values();
      for (int again = 0; again < 5; ++again) {
        ASSERT_TRUE(launch.run().ok());
        EXPECT_EQ(launch.output().values(), first) << name << ": " << text;
      }
    }
  }
}

TEST_F(CudaLinear, ClassicCublasMultipliesPlainProducts) {
  if (!profile().library_versions.contains("cublas")) GTEST_SKIP() << "libcublas is not installed";
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(T[17,129], T[129,65])",
           "matmul(T[129,17], T[65,129]; transpose_a=true transpose_b=true alpha=-0.5)",
           "matmul(T[33,70]{80,1}, T[70,45]{1,77}) -> T[33,45]{50,1}",
           "matmul(T[33,70], T[70,45]) -> T[33,45]{1,40}",
           "matmul(T[3,33,64], T[3,64,40])",
           "matmul(T[33,64], T[3,64,40])",
           "matmul(T[100], T[100,30])",
           "matmul(T[64,1], T[1,64])",
           "linear(T[2,7,9], T[33,9])",
       }) {
    for (const std::string dtype : {"f32", "tf32", "f16", "bf16", "f64"}) {
      expect_right(with_dtype(text, dtype), "cublas", random());
    }
  }
  for (const std::string text :
       {"matmul(bf16[33,70]/2, bf16[70,45]/2) -> f32[33,45]/4", "matmul(i8[20,96], i8[40,96]; transpose_b=true)"}) {
    expect_right(text, "cublas", random());
  }
}

TEST_F(CudaLinear, ClassicCublasKeepsToTheWorkspaceLimit) {
  if (!profile().library_versions.contains("cublas")) GTEST_SKIP() << "libcublas is not installed";
  for (const std::uint64_t limit : {0, 100, 1 << 20}) {
    Problem problem = problem_of("matmul(bf16[64,8192], bf16[8192,64])");
    problem.limits.workspace_bytes = limit;
    EXPECT_EQ(kernel(OpId::matmul, "cublas").workspace_bytes(problem, profile()), limit);
    Launch launch(problem, "cublas");
    launch.fill(random());
    const Status status = launch.run();
    ASSERT_TRUE(status.ok()) << limit << ": " << status.message();
    EXPECT_EQ(mistake(problem, launch, "cublas"), "");
  }
}

// Threads share the handle, which has one stream at a time.
TEST_F(CudaLinear, ClassicCublasServesStreamsOfSeveralThreads) {
  if (!profile().library_versions.contains("cublas")) GTEST_SKIP() << "libcublas is not installed";
  const Problem problem = problem_of("matmul(f32[65,64], f32[64,48])");
  std::vector<std::string> mistakes(4, "did not run");
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < mistakes.size(); ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 own(t);
      const Stream stream = driver().create_stream(0);
      Launch launch(problem, "cublas");
      mistakes[t].clear();
      for (int i = 0; i < 20 && mistakes[t].empty(); ++i) {
        launch.fill(own);
        const Status status = launch.run(stream);
        mistakes[t] = status.ok() ? mistake(problem, launch, "cublas") : std::string(status.message());
      }
      driver().destroy_stream(0, stream);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : mistakes) EXPECT_EQ(each, "");
}

// Asks about a device that need not be here.
TEST(CudaLinearRefusals, SayWhatTheLibraryCannotDo) {
  if (backend().kernels().empty()) GTEST_SKIP() << "this build has no CUDA backend";
  DeviceProfile hopper;
  hopper.compute_capability_major = 9;
  hopper.library_versions = {{"cublas", "13.0.0"}, {"cublasLt", "13.0.0"}};
  const auto reason = [&](const std::string& text, const std::string& name = "cublasLt") {
    const Problem problem = problem_of(text);
    return kernel(problem.op, name).accepts(problem, hopper).reason;
  };
  EXPECT_EQ(reason("linear(bf16[9,33], bf16[17,33], bf16[17]; activation=gelu)"), "");
  EXPECT_EQ(reason("matmul(f16[9,16], f32[16,9])"), "dtypes f16, f32 -> f32 are not taken together");
  EXPECT_EQ(reason("matmul(f32[9,16], f32[16,9]) -> f64[9,9]"), "dtypes f32, f32 -> f64 are not taken together");
  EXPECT_EQ(reason("matmul(f8e5m2[16,16], f8e5m2[16,16]; transpose_b=true)"),
            "dtypes f8e5m2, f8e5m2 -> f32 are not taken together");
  EXPECT_EQ(reason("linear(f32[4,0], f32[7,0], f32[7])"), "input 0 is empty");
  EXPECT_EQ(reason("matmul(f32[4,8]{16,2}, f32[8,6])"), "a matrix has no leading dimension: neither stride is 1");
  EXPECT_EQ(reason("matmul(i8[16,32], i8[32,16])"), "a matrix of 8-bit numbers is not contiguous along k");
  EXPECT_EQ(reason("matmul(i8[16,32], i8[18,32]; transpose_b=true)"),
            "n, k, a stride or an address is not a multiple of 4, which 8-bit numbers need");
  EXPECT_EQ(reason("matmul(f8e4m3[16,24], f8e4m3[16,24]; transpose_b=true)"),
            "n, k, a stride or an address is not a multiple of 16, which 8-bit numbers need");
  EXPECT_EQ(reason("matmul(f8e4m3[16,32]/8, f8e4m3[16,32]; transpose_b=true)"),
            "n, k, a stride or an address is not a multiple of 16, which 8-bit numbers need");
  EXPECT_EQ(reason("matmul(i8[4,131072], i8[4,131072], i32[4]; transpose_b=true)"), "k = 131072 is over 131071");
  EXPECT_EQ(reason("matmul(i8[4,131072], i8[4,131072]; transpose_b=true)"), "");
  EXPECT_EQ(reason("linear(f32[4,8], f32[8,8])", "cublas"), "");
  EXPECT_EQ(reason("matmul(f32[4,8], f32[8,6]; alpha=2)", "cublas"), "");
  for (const std::string text : {"linear(f32[4,8], f32[8,8], f32[8])", "linear(f32[4,8], f32[8,8]; activation=relu)",
                                 "matmul(f32[4,8], f32[8,6]) -> bf16[4,6]"}) {
    EXPECT_EQ(reason(text, "cublas"), "it computes alpha * a @ b only, and casts nothing");
  }
  hopper.compute_capability_major = 8;
  EXPECT_EQ(reason("matmul(f8e4m3[16,32], f8e4m3[16,32]; transpose_b=true)"), "compute capability 8.0 is below 8.9");
  hopper.library_versions.clear();
  EXPECT_EQ(reason("matmul(f32[4,8], f32[8,6])"), "libcublasLt is not installed");
  EXPECT_EQ(reason("matmul(f32[4,8], f32[8,6])", "cublas"), "libcublas is not installed");
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
