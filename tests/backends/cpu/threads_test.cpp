// The thread count changes nothing, not a bit, but where a plan's token says that its split follows it.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

/// Plain memory for each slot.
class Heap {
 public:
  std::byte* place(std::size_t slot, std::size_t bytes) {
    if (slots_.size() <= slot) slots_.resize(slot + 1);
    slots_[slot] = Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes)});
    return slots_[slot].as<std::byte>();
  }

 private:
  std::vector<Tensor> slots_;
};

Problem limited(const Problem& problem, bool deterministic, std::uint32_t threads) {
  Problem under = problem;
  under.limits.deterministic = deterministic;
  under.limits.threads = threads;
  return under;
}

/// Whether the plan says that the cuts through its work depend on the number of threads.
bool says_so(const Kernel& kernel, const Problem& problem) {
  const PrepareContext context{problem.device, cpu_profile(), Runtime::global().devices().driver(problem.device)};
  return kernel.prepare(problem, context)->token().find("split=threads") != std::string::npos;
}

std::vector<std::vector<std::byte>> bytes_with(const Kernel& kernel, const oracle::Case& one, bool deterministic,
                                               std::uint32_t threads) {
  const Problem problem = limited(one.problem(), deterministic, threads);
  Heap heap;
  const PlanRun run = run_plan(
      kernel, problem, one, [&](std::size_t slot, std::size_t bytes, std::size_t) { return heap.place(slot, bytes); });
  EXPECT_TRUE(run.status.ok()) << text_of(kernel, problem) << ": " << run.status.message();
  return run.outputs;
}

/// Whether there may be work for several threads at all.
bool large(const Problem& problem) {
  std::size_t bytes = 0;
  for (const auto* specs : {&problem.inputs, &problem.outputs}) {
    for (const TensorSpec& spec : *specs) bytes += span_bytes(spec);
  }
  return bytes > 8192;
}

void compare_counts(const Kernel& kernel, const oracle::Case& one, bool deterministic, FirstFailures& failures) {
  const auto alone = bytes_with(kernel, one, deterministic, 1);
  for (const std::uint32_t threads : {3u, 2u, 7u, 4u, 8u}) {
    // One more count will do where the work is small or, in a reference, not split at all.
    if (threads != 3 && (kernel.name() == "reference" || !large(one.problem()))) continue;
    if (bytes_with(kernel, one, deterministic, threads) == alone) continue;
    failures.add(kernel, text_of(kernel, one.problem()) + " differs with " + std::to_string(threads) + " threads");
    return;
  }
}

TEST(ThreadCount, LeavesEveryBitOfADeterministicKernelsResult) {
  FirstFailures failures;
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) {
    if (!kernel.deterministic()) return;
    EXPECT_FALSE(says_so(kernel, limited(one.problem(), true, 2))) << text_of(kernel, one.problem());
    compare_counts(kernel, one, true, failures);
  });
}

TEST(ThreadCount, LeavesEveryBitUnlessThePlanSaysOtherwise) {
  FirstFailures failures;
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) {
    if (!kernel.deterministic()) return;
    if (!says_so(kernel, limited(one.problem(), false, 1))) return compare_counts(kernel, one, false, failures);
    EXPECT_TRUE(kernel.name() == "onednn" || kernel.name() == "openblas") << text_of(kernel, one.problem());
  });
}

// Extents that are cut at other places by other counts, and sums long enough for their order to show.
constexpr const char* cut_products[] = {
    "matmul(f64[100,333], f64[333,257])",
    "matmul(f64[3,65,500], f64[3,500,129])",
    "matmul(f64[1,700], f64[700,4000])",
    "matmul(f64[257,700], f64[700,3])",
    "matmul(f32[100,333], f32[333,257])",
    "matmul(f32[1,700], f32[700,4000])",
    "matmul(bf16[100,333], bf16[333,257])",
    "matmul(i8[100,333], i8[333,257]) -> i32[100,257]",
    "linear(f32[130,700], f32[333,700], f32[333]; activation=gelu)",
    "conv2d(f32[2,70,17,17], f32[90,70,3,3], f32[90]; padding=1,1)",
    "conv2d(f32[1,256,14,14], f32[200,256,1,1])",
    "conv2d(f32[1,256,4,4], f32[512,256,3,3])",
    "conv3d(f32[1,16,9,9,9], f32[33,16,3,3,3])",
    "matmul:backward(f64[100,333], f64[333,257], f64[100,257])",
    "conv2d:backward(f32[2,70,17,17], f32[90,70,3,3], f32[90], f32[2,90,17,17]; padding=1,1)",
};

class ThreadCountOf : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(CutProducts, ThreadCountOf, ::testing::ValuesIn(cut_products));

TEST_P(ThreadCountOf, AProductShowsOnlyWhereItsPlanSaysSo) {
  FirstFailures failures;
  const auto one = oracle::case_of(GetParam(), Device{});
  for (const auto& kernel : cpu_kernels(one->problem().op)) {
    if (kernel->name() == "reference" || !kernel->supports(one->problem(), cpu_profile()).supported) continue;
    compare_counts(*kernel, *one, true, failures);
    if (!says_so(*kernel, limited(one->problem(), false, 1))) compare_counts(*kernel, *one, false, failures);
  }
}

std::size_t threads_of_this_process() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

void run_large_relu(std::uint32_t threads) {
  Runtime& runtime = Runtime::global();
  KernelPolicy policy;
  policy.threads = threads;
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Tensor x = Tensor::empty(DataType::float32, {1 << 22});
  std::fill_n(x.as<float>(), 1 << 22, -1.0f);
  const Tensor* const tensors[] = {&x};
  runtime.dispatcher().dispatch({.op = OpId::relu, .inputs = tensors, .outputs = tensors});
}

TEST(ThreadCount, OfThePolicyIsTheCountThatWorks) {
  const std::size_t before = threads_of_this_process();
  run_large_relu(1);
  EXPECT_EQ(threads_of_this_process(), before) << "one thread is the caller's";
  run_large_relu(static_cast<std::uint32_t>(before) + 2);
  EXPECT_GT(threads_of_this_process(), before) << "the pool grows to the count that is asked for";
}

TEST(ThreadCount, ComesFromThePolicy) {
  Runtime& runtime = Runtime::global();
  KernelPolicy policy;
  policy.threads = 3;
  policy.deterministic = true;
  const ScopedPolicy scope(runtime.dispatcher(), policy);
  const Decision decision = runtime.dispatcher().explain(parse_problem("matmul(f32[8,8], f32[8,8])"));
  EXPECT_EQ(decision.problem.limits.threads, 3u);
  EXPECT_TRUE(decision.problem.limits.deterministic);
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
