// Under a deterministic policy the thread count changes nothing, not a bit.

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

std::vector<std::vector<std::byte>> bytes_with(const Kernel& kernel, const oracle::Case& one, std::uint32_t threads) {
  Problem problem = one.problem();
  problem.limits.deterministic = true;
  problem.limits.threads = threads;
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

TEST(ThreadCount, LeavesEveryBitOfADeterministicKernelsResult) {
  FirstFailures failures;
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) {
    if (!kernel.deterministic()) return;
    const auto alone = bytes_with(kernel, one, 1);
    for (const std::uint32_t threads : {3u, 2u, 7u}) {
      // One more count will do where the work is small or, in a reference, not split at all.
      if (threads != 3 && (kernel.name() == "reference" || !large(one.problem()))) continue;
      if (bytes_with(kernel, one, threads) == alone) continue;
      failures.add(kernel, text_of(kernel, one.problem()) + " differs with " + std::to_string(threads) + " threads");
      return;
    }
  });
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
