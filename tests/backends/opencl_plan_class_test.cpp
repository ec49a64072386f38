// One plan serves many extents on OpenCL devices: a sequence that grows builds few plans, and no bit shows it.

#include <gtest/gtest.h>

#include "backends/cases.h"
#include "backends/counted_kernel.h"
#include "backends/oracle.h"

namespace xpuruntime {
namespace {

constexpr Device device = {DeviceType::opencl, 0};

/// A problem for each of the lengths that `K` stands for.
struct Growing {
  const char* kernel;
  const char* text;
  int most_plans;  // of all lengths
  std::int64_t first = 129, last = 200, step = 3;
};

// Between powers of two there are five, by what a length is divisible by.
constexpr int of_one = 5, of_two = 10;

constexpr Growing problems[] = {
    {"ATTENTION_SINGLE_QUERY", "attention(f32[1,4,1,16], f32[1,2,K,16], f32[1,2,K,16])", 34, 1, 200, 1},
    {"ATTENTION_SINGLE_QUERY",  // in a cache of 300, of several work-groups
     "attention(bf16[2,4,2,16], bf16[2,2,K,16]{9600,4800,16,1}, bf16[2,2,K,16]{9600,4800,16,1}; "
     "causal=true causal_align=bottom_right)",
     of_one},
    {"ATTENTION_SINGLE_QUERY", "attention(f16[2,2,1,8], f16[2,2,K,8], f16[2,2,K,8], bool[2,1,1,K], i32[2]; lse=true)",
     of_one},
    {"ATTENTION_SINGLE_QUERY", "attention(f32[2,4,1,8], f32[9,8,2,8], f32[9,8,2,8], none, i32[2], i32[2,K]; lse=true)",
     of_one},
    {"ATTENTION_TILED", "attention(f32[1,4,K,16], f32[1,2,K,16]{1,16,32,1}, f32[1,2,K,16]; causal=true)", of_one},
    {"ATTENTION_DIRECT", "attention(f32[2,4,3,8], f32[2,2,K,8], f32[2,2,K,8], f32[3,K])", of_one},
    {"MATMUL_FEW_ROWS", "matmul(f32[2,2,1,16], f32[2,2,16,K])", of_one},              // scores
    {"MATMUL_FEW_ROWS", "matmul(f32[2,2,1,K], f32[2,2,K,16])", of_one},               // and their values
    {"MATMUL_REGISTER_BLOCKED", "linear(f32[2,K,24], f32[40,24], f32[40])", of_one},  // a prompt
    {"MATMUL_DIRECT", "matmul(bf16[K,24], bf16[24,K])", of_one},
    {"MATMUL_TILED_LOCAL", "matmul(f32[K,40], f32[40,24])", of_one},
    {"MATMUL_SPLIT_K", "matmul(f32[K,1100], f32[1100,24])", of_one, 129, 200, 5},
    {"ADD_DIRECT", "add(f32[2,K,24], f32[24])", of_one},
    {"ELEMENTWISE_DIRECT", "silu_mul(f32[K,48])", of_one},
    {"ELEMENTWISE_DIRECT", "mul(f16[2,1,K], f16[2,3,K])", of_one},
    {"CAST_DIRECT", "cast(f32[K,3]; dtype=f64)", of_one},
    {"COPY_DIRECT", "concat(f32[2,K,8], f32[2,1,8]; dim=1)", of_two},  // a cache that is not kept
    {"COPY_DIRECT", "transpose(f32[K,24])", of_one},
    {"EMBEDDING_DIRECT", "embedding(i64[K], f32[40,24])", of_one},
    {"ROPE_DIRECT", "rope(f32[2,K,4,16], i64[K], f32[256,8], f32[256,8])", of_one},
    {"SOFTMAX_LINES", "softmax(f32[2,3,K])", of_one},
    {"SOFTMAX_LINES", "softmax(f32[2,K,20]; dim=1)", of_one},
    {"NORM_LINES", "add_rms_norm(f32[K,96], f32[K,96], f32[96])", of_one},
    {"NORM_LINES", "add_rms_norm(bf16[2,K,24], bf16[2,K,24], bf16[24])", of_one},
    {"NORM_LINES", "layer_norm(f32[K,3,8], f32[3,8], f32[3,8]; normalized_rank=2)", of_one},
};

class OpenclPlanClass : public ::testing::TestWithParam<Growing> {
 protected:
  void SetUp() override {
    if (!runtime_.devices().has(device)) GTEST_SKIP() << runtime_.devices().why_absent(DeviceType::opencl);
    const Problem problem = problem_of(1);
    for (const auto& one : runtime_.registry().kernels(problem.op, DeviceType::opencl))
      if (one->name() == GetParam().kernel) kernel_ = one;
    ASSERT_NE(kernel_, nullptr);
    runtime_.registry().register_kernel(classed_ = std::make_shared<CountedKernel>(kernel_, "classed", true));
    runtime_.registry().register_kernel(std::make_shared<CountedKernel>(kernel_, "alone", false));
  }

  static Problem problem_of(std::int64_t length) {
    return parse_problem(cases::replaced(GetParam().text, "K", std::to_string(length)), device);
  }
  oracle::Result result_of(const oracle::Case& one, const char* kernel) {
    KernelPolicy policy;
    policy.force(to_string(one.problem().op), kernel);
    const ScopedPolicy scope(runtime_.dispatcher(), policy);
    oracle::Result result = one.through(runtime_);
    EXPECT_EQ(result.kernel, kernel);
    EXPECT_EQ(one.compare(result), "") << to_string(one.problem());
    return result;
  }

  Runtime runtime_{{false, true, {}}};
  std::shared_ptr<const Kernel> kernel_;
  std::shared_ptr<CountedKernel> classed_;
};
INSTANTIATE_TEST_SUITE_P(Opencl, OpenclPlanClass, ::testing::ValuesIn(problems));

TEST_P(OpenclPlanClass, FewPlansServeEveryLengthWithTheBitsOfTheirOwn) {
  for (std::int64_t length = GetParam().first; length <= GetParam().last; length += GetParam().step) {
    const oracle::Case one(problem_of(length), static_cast<std::uint64_t>(length));
    const oracle::Result classed = result_of(one, "classed"), alone = result_of(one, "alone");
    EXPECT_EQ(classed.values, alone.values) << to_string(one.problem());
    EXPECT_FALSE(classed.strayed);
  }
  EXPECT_LE(classed_->made, GetParam().most_plans);
}

// Twice the length takes a few more plans, not twice as many.
TEST_P(OpenclPlanClass, LengthsBetweenPowersOfTwoAreFewClasses) {
  std::vector<Problem> classes;
  for (std::int64_t length = 1025; length <= 2048; ++length) {
    const auto any = kernel_->plan_problem(problem_of(length));
    ASSERT_TRUE(any.has_value());
    EXPECT_EQ(kernel_->plan_problem(*any), any) << to_string(*any);
    if (std::find(classes.begin(), classes.end(), *any) == classes.end()) classes.push_back(*any);
  }
  EXPECT_LE(classes.size(), 12u);
}

}  // namespace
}  // namespace xpuruntime
