// One plan serves problems of many extents: a sequence that grows builds no plan a step, and no bit shows it.

#include <gtest/gtest.h>

#include "backends/counted_kernel.h"
#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

/// A problem for each of the lengths that `K` stands for.
struct Growing {
  const char* kernel;
  const char* text;
  std::int64_t first, last;
};

// 257 keys are a second chunk, and of the first problem so much work that threads share it.
constexpr Growing problems[] = {
    {"single_query", "attention(f32[1,12,1,64], f32[1,4,K,64], f32[1,4,K,66])", 224, 287},
    {"single_query",  // in a cache of 300
     "attention(bf16[2,4,2,16], bf16[2,2,K,16]{9600,4800,16,1}, bf16[2,2,K,16]{9600,4800,16,1}; "
     "causal=true causal_align=bottom_right)",
     224, 287},
    {"single_query", "attention(f16[2,2,1,8], f16[2,2,K,8], f16[2,2,K,8], bool[2,1,1,K], i32[2]; lse=true)", 224, 287},
    {"single_query", "attention(f32[2,4,3,8], f32[2,2,K,8], f32[2,2,K,8], f32[3,K])", 1, 64},
    {"single_query", "attention(f32[2,4,1,8], f32[9,8,2,8], f32[9,8,2,8], none, i32[2], i32[2,K]; lse=true)", 1, 64},
    {"reference", "attention(f64[2,4,6,8], f64[2,2,K,8], f64[2,2,K,8]{1,2,4,4096}, f64[6,K]; causal=true)", 1, 64},
    {"reference", "attention(f32[2,4,6,8], f32[9,8,2,8], f32[9,8,2,8], none, none, i32[2,K])", 1, 16},
    {"simd", "layer_norm(bf16[2,K,3,8], bf16[3,8], bf16[3,8]; normalized_rank=2)", 1, 64},
    {"simd", "layer_norm(f32[K,24], f32[24])", 1, 64},
    {"simd", "add_rms_norm(f16[K,24], f16[K,24], f16[24])", 1, 64},
    {"simd", "add_rms_norm(bf16[K,9000], bf16[K,9000], bf16[9000])", 1, 8},  // the sums of a row's chunks in between
};

std::vector<std::vector<std::byte>> bytes_by(const Kernel& kernel, const oracle::Case& one, PreparedFor prepared_for) {
  std::vector<Tensor> memory;
  const auto place = [&](std::size_t, std::size_t bytes, std::size_t) {
    memory.push_back(Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes)}));
    return memory.back().as<std::byte>();
  };
  const PlanRun run = run_plan(kernel, one.problem(), one, place, prepared_for);
  EXPECT_EQ(compare(run, kernel, one), "") << text_of(kernel, one.problem());
  return run.outputs;
}

class PlanClass : public ::testing::TestWithParam<Growing> {
 protected:
  PlanClass() : problem_(parse_problem(text_at(GetParam().first))) {
    for (const auto& one : runtime_.registry().kernels(problem_.op, DeviceType::cpu)) {
      if (one->name() == GetParam().kernel) kernel_ = one;
    }
  }

  static std::string text_at(std::int64_t length) {
    return cases::replaced(GetParam().text, "K", std::to_string(length));
  }
  template <class Use>
  static void for_each_length(const Use& use) {
    for (std::int64_t length = GetParam().first; length <= GetParam().last; ++length) {
      use(oracle::Case(parse_problem(text_at(length)), static_cast<std::uint64_t>(length)));
    }
  }

  Runtime runtime_{{false, false, {}}};
  Problem problem_;  // the first
  std::shared_ptr<const Kernel> kernel_;
};
INSTANTIATE_TEST_SUITE_P(Cpu, PlanClass, ::testing::ValuesIn(problems));

TEST_P(PlanClass, OnePlanServesEveryLength) {
  ASSERT_NE(kernel_, nullptr);
  const auto counted = std::make_shared<CountedKernel>(kernel_);
  runtime_.registry().register_kernel(counted);
  KernelPolicy policy;
  policy.force(to_string(problem_.op), "counted");
  const ScopedPolicy scope(runtime_.dispatcher(), policy);
  for_each_length([&](const oracle::Case& one) {
    const oracle::Result result = one.through(runtime_);
    EXPECT_EQ(result.kernel, "counted");
    EXPECT_EQ(one.compare(result), "") << text_of(*kernel_, one.problem());
  });
  EXPECT_EQ(counted->made, 1);
}

TEST_P(PlanClass, GivesTheBitsOfAPlanForTheLengthItself) {
  ASSERT_NE(kernel_, nullptr);
  for_each_length([&](const oracle::Case& one) {
    EXPECT_EQ(bytes_by(*kernel_, one, PreparedFor::its_class), bytes_by(*kernel_, one, PreparedFor::the_problem))
        << text_of(*kernel_, one.problem());
  });
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
