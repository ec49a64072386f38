// The products of CUTLASS on Hopper, plan by plan. The answers are the oracle's, in float64.

#include <set>

#include "backends/cuda_fixture.h"
#include "xpuruntime/core/float_formats.h"
#include "xpuruntime/device/graph_capture.h"
#include "xpuruntime/runtime/ops.h"

namespace xpuruntime::cuda_tests {
namespace {

std::string reason_on(const DeviceProfile& profile, const std::string& text) {
  const Problem problem = problem_of(text);
  return kernel(problem.op, "cutlass").accepts(problem, profile).reason;
}

/// Why the kernel is absent from this build; empty: it is not.
std::string why_not_built() {
  if (backend().kernels().empty()) return driver().why_absent();
  const std::string reason =
      reason_on(DeviceProfile::load(XRT_TEST_DATA "/profiles/h200.json"), "matmul(bf16[64,64], bf16[64,64])");
  EXPECT_TRUE(reason.empty() || reason.starts_with("this build has no CUTLASS: configure the preset")) << reason;
  return reason;
}

class CudaCutlass : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped()) return;
    if (const std::string reason = why_not_built(); !reason.empty()) GTEST_SKIP() << reason;
    if (profile().compute_capability_major != 9) GTEST_SKIP() << "this device is not of compute capability 9.0";
  }

  std::vector<std::string> variants(const Problem& problem) const {
    return kernel(problem.op, "cutlass").variants(problem, {Device{DeviceType::nvidia, 0}, profile(), driver()});
  }
};

/// Runs it twice by one plan, compares the outputs with the oracle's, and the two runs with each other bit by bit.
void expect_right(const std::string& text, std::mt19937_64& random, const std::string& token = {}) {
  SCOPED_TRACE(text + " " + token);
  const Problem problem = problem_of(text);
  try {
    Launch launch(problem, "cutlass", 0, token);
    ASSERT_TRUE(launch.verdict().supported) << launch.verdict().reason;
    launch.fill(random);
    const Status status = launch.run();
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_TRUE(launch.output().margins_untouched());
    std::vector<oracle::Values> inputs;
    for (std::size_t i = 0; i < problem.inputs.size(); ++i) inputs.push_back(launch.input(i).values());
    const oracle::Values values = launch.output().values();
    const oracle::Answer answer = oracle::solve(problem, inputs)[0];
    EXPECT_EQ(oracle::compare_output(problem, 0, answer, values, "cutlass"), "") << launch.plan().token();
    ASSERT_TRUE(launch.queue().ok() && driver().synchronize(0, {}).ok() && launch.output().download().ok());
    EXPECT_EQ(launch.output().values(), values);
  } catch (const Error& error) {
    ADD_FAILURE() << error.what();
  }
}

constexpr const char* tiles[] = {
    "tile=128x256x64 cluster=2 schedule=cooperative", "tile=256x128x64 cluster=2 schedule=cooperative",
    "tile=128x128x64 cluster=2 schedule=pingpong",    "tile=64x128x64 cluster=1 schedule=pingpong",
    "tile=128x256x64 cluster=1 schedule=cooperative", "tile=128x128x64 cluster=1 schedule=cooperative",
    "tile=64x128x128 cluster=1 schedule=cooperative", "tile=32x128x128 cluster=1 schedule=cooperative"};

TEST_F(CudaCutlass, MultipliesTailsWithEveryTile) {
  SCOPED_TRACE(seed_text());
  for (const std::string tile : tiles) {
    for (const std::string dtype : {"bf16", "f16"}) {
      for (const std::string text :
           {"linear(T[1,8], T[8,8], T[8])", "linear(T[77,264], T[200,264], T[200]; activation=gelu)",
            "matmul(T[130,136], T[136,328])", "matmul(T[300,72], T[72,528], T[300,528]; alpha=0.5 beta=-2)",
            "matmul(T[3,33,40], T[3,40,136])", "matmul(T[3,33,40], T[3,136,40]; transpose_b=true)"}) {
        expect_right(with_dtype(text, dtype), random(), tile + " split=1");
      }
    }
    if (HasFailure()) return;
  }
}

TEST_F(CudaCutlass, SharesALongKAmongBlocks) {
  SCOPED_TRACE(seed_text());
  for (std::size_t tile = 4; tile < std::size(tiles); ++tile) {
    for (const std::string split : {"stream_k", "2", "3", "4", "8"}) {
      const std::string token = std::string(tiles[tile]) + " split=" + split;
      expect_right("linear(bf16[33,4104], bf16[136,4104], bf16[136]; activation=silu)", random(), token);
      expect_right("linear(f16[136,4104], f16[264,4104])", random(), token);
      expect_right("matmul(bf16[70,4104], bf16[4104,264], bf16[70,264]; alpha=-2 beta=0.25)", random(), token);
      expect_right("matmul(f16[2,9,4104], f16[2,4104,136])", random(), token);
    }
    if (HasFailure()) return;
  }
}

TEST_F(CudaCutlass, AddsTheBiasAndAppliesTheActivationBeforeTheOneRounding) {
  SCOPED_TRACE(seed_text());
  for (const std::string activation : {"none", "relu", "gelu", "silu"}) {
    for (const std::string dtype : {"bf16", "f16"}) {
      for (const std::string text :
           {"linear(T[5,64], T[72,64]", "linear(T[96,1032], T[520,1032], T[520]", "linear(T[2,3,16], T[8,16], T[8]"}) {
        expect_right(with_dtype(text, dtype) + "; activation=" + activation + ")", random());
      }
    }
  }
}

TEST_F(CudaCutlass, TakesStridesBatchesAndC) {
  SCOPED_TRACE(seed_text());
  for (const std::string text : {
           "matmul(bf16[33,520]{528,1}, bf16[520,200]{208,1}) -> bf16[33,200]{216,1}",
           "matmul(bf16[33,520]{528,1}, bf16[520,200]{1,528}, bf16[33,200]{240,1}; beta=3) -> bf16[33,200]{216,1}",
           "matmul(bf16[33,64], bf16[64,200], bf16[200]; alpha=3)",
           "matmul(bf16[64], bf16[64,200], bf16[200]; beta=2)",
           "matmul(f16[33,64], f16[64,200]; alpha=0)",
           "matmul(f16[4,33,64]{64,256,1}, f16[4,64,40], f16[4,33,40]; alpha=0.5)",
           "matmul(f16[4,33,64], f16[4,64,40], f16[40])",
           "matmul(f16[5,7,16], f16[16,8])",
       }) {
    expect_right(text, random());
  }
}

TEST_F(CudaCutlass, MakesEveryPlanThatItListsByItsToken) {
  SCOPED_TRACE(seed_text());
  std::set<std::string> seen;
  for (const std::string text : {"linear(bf16[16,2056], bf16[264,2056])", "linear(f16[64,2056], f16[1032,2056])",
                                 "matmul(bf16[256,1032], bf16[1032,520])", "matmul(f16[1000,72], f16[72,1048])"}) {
    const std::vector<std::string> tokens = variants(problem_of(text));
    EXPECT_LE(tokens.size(), 10u);
    EXPECT_EQ(std::set<std::string>(tokens.begin(), tokens.end()).size(), tokens.size());
    for (const std::string& token : tokens) expect_right(text, random(), token);
    seen.insert(tokens.at(0));
  }
  EXPECT_GT(seen.size(), 1u);
  EXPECT_THROW(Launch(problem_of("matmul(bf16[8,64], bf16[64,64])"), "cutlass", 0, "tile=96x96x64 split=1"), Error);
  EXPECT_THROW(Launch(problem_of("matmul(bf16[8,64], bf16[64,64])"), "cutlass", 0, std::string(tiles[5]) + " split=8"),
               Error);
}

// A c that beta takes away is not read, and an alpha of 0 takes no NaN away.
TEST_F(CudaCutlass, ReadsWhatTheFactorsSay) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Launch unread(problem_of("matmul(bf16[4,64], bf16[64,40], bf16[4,40]; beta=0)"), "cutlass");
  unread.fill(random());
  unread.input(2).set({1, 1}, nan);
  ASSERT_TRUE(unread.run().ok());
  EXPECT_FALSE(std::isnan(unread.output().at({1, 1})));
  Launch kept(problem_of("matmul(bf16[4,64], bf16[64,40]; alpha=0)"), "cutlass");
  kept.fill(random());
  kept.input(0).set({1, 3}, nan);
  ASSERT_TRUE(kept.run().ok());
  EXPECT_TRUE(std::isnan(kept.output().at({1, 1})));
  EXPECT_EQ(kept.output().at({2, 1}), 0);
}

TEST_F(CudaCutlass, KeepsToTheWorkspaceThatIsAllowed) {
  Problem problem = problem_of("linear(bf16[64,8192], bf16[256,8192])");
  EXPECT_FALSE(variants(problem).at(0).ends_with("split=1")) << variants(problem).at(0);
  Launch launch(problem, "cutlass");
  EXPECT_GT(launch.plan().workspace_bytes().value(), 0u);
  EXPECT_EQ(launch.plan().run({{}, {}, nullptr, {}}).code(), ErrorCode::invalid_argument);
  problem.limits.workspace_bytes = 0;
  for (const std::string& token : variants(problem)) EXPECT_TRUE(token.ends_with("split=1")) << token;
  EXPECT_EQ(Launch(problem, "cutlass").plan().workspace_bytes().value(), 0u);
}

// Blocks that share sums count each other in the workspace: every replay begins at 0.
TEST_F(CudaCutlass, IsRecordedAndReplayed) {
  constexpr Device gpu{DeviceType::nvidia, 0};
  Runtime& runtime = Runtime::global();
  DeviceManager& devices = runtime.devices();
  KernelPolicy policy;
  policy.force("linear", "cutlass");
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Tensor x = devices.allocate(DataType::bfloat16, {64, 8192}, gpu);
  const Tensor weight = devices.allocate(DataType::bfloat16, {256, 8192}, gpu);
  const Tensor y = devices.allocate(DataType::bfloat16, {64, 256}, gpu);
  const auto fill = [&](const Tensor& tensor, double value) {
    const std::vector<std::uint16_t> values(static_cast<std::size_t>(element_count(tensor.spec())),
                                            encode_bfloat16(value));
    ASSERT_TRUE(devices.driver(gpu).copy_from_host(0, tensor.data(), 0, values.data(), 2 * values.size(), {}).ok());
  };
  fill(x, 1);
  fill(weight, 1);
  ops::linear_out(y, x, weight);
  GraphCapture graph(devices, gpu);
  ops::linear_out(y, x, weight);
  graph.end();
  for (const double factor : {1.0, 2.0, -4.0}) {
    fill(x, factor);
    fill(y, 7);
    graph.replay();
    ASSERT_TRUE(devices.driver(gpu).synchronize(0, {}).ok());
    std::vector<std::uint16_t> values(64 * 256);
    ASSERT_TRUE(devices.driver(gpu).copy_to_host(0, values.data(), y.data(), 0, 2 * values.size(), {}).ok());
    EXPECT_EQ(values, std::vector<std::uint16_t>(values.size(), encode_bfloat16(8192 * factor)));
  }
}

// Asks about devices that need not be here.
TEST(CudaCutlassRefusals, SayWhatItDoesNotTake) {
  if (const std::string reason = why_not_built(); !reason.empty()) GTEST_SKIP() << reason;
  DeviceProfile device = DeviceProfile::load(XRT_TEST_DATA "/profiles/h200.json");
  const auto reason = [&](const std::string& text) { return reason_on(device, text); };
  EXPECT_EQ(reason("linear(f16[4,16,64], f16[64,64], f16[64]; activation=gelu)"), "");
  EXPECT_EQ(reason("matmul(bf16[3,9,64], bf16[3,64,40])"), "");
  EXPECT_EQ(reason("matmul(f32[64,64], f32[64,64])"), "input 0 is f32, and this kernel takes f16 and bf16");
  EXPECT_EQ(reason("matmul(f16[64,64], bf16[64,64]) -> f16[64,64]"),
            "input 1 is bf16, and this kernel takes the input's f16");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64]) -> f16[64,64]"),
            "output 0 is f16, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("linear(bf16[64,64], bf16[64,64], f16[64]) -> bf16[64,64]"),
            "input 2 is f16, and this kernel takes the input's bf16");
  EXPECT_EQ(reason("matmul(bf16[64,60], bf16[60,64])"), "k = 60 is not a multiple of 8");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,60])"), "n = 60 is not a multiple of 8");
  EXPECT_EQ(reason("matmul(bf16[0,64], bf16[64,64])"), "input 0 is empty");
  EXPECT_EQ(reason("matmul(bf16[1,2147483648], bf16[2147483648,8])"),
            "the largest extent = 2147483648 is over 1073741824");
  EXPECT_EQ(reason("matmul(bf16[2,1,8,8], bf16[3,8,8])"), "one stride does not walk the batch");
  EXPECT_EQ(reason("matmul(bf16[64,64]{68,1}, bf16[64,64])"), "input 0 has no contiguous rows that begin on 16 bytes");
  EXPECT_EQ(reason("matmul(bf16[64,64]{1,64}, bf16[64,64])"), "input 0 has no contiguous rows that begin on 16 bytes");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64]/8)"),
            "input 1 has no contiguous rows or columns that begin on 16 bytes");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64]) -> bf16[64,64]{1,64}"),
            "output 0 has no contiguous rows that begin on 16 bytes");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64], bf16[64]; beta=2)"),
            "input 2 has no contiguous rows that begin on 16 bytes");
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64]; alpha=1e-60)"), "alpha or beta does not fit in f32");
  device.compute_capability_major = 10;
  EXPECT_EQ(reason("matmul(bf16[64,64], bf16[64,64])"), "compute capability 10.0 is not 9.0");
}

}  // namespace
}  // namespace xpuruntime::cuda_tests
