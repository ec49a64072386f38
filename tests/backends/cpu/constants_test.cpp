// What a plan makes of constants once must be what it makes of them in every run.

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "backends/cpu/plan_run.h"

namespace xpuruntime::cpu_tests {
namespace {

TEST(HeldConstants, PlansComputeTheSameWithWhatTheyHold) {
  std::set<std::string> holding;
  FirstFailures failures;
  for_each_subject([&](const Kernel& kernel, const oracle::Case& one) {
    const Problem& problem = one.problem();
    const bool has_weights = product_ops.contains(problem.op) || conv_ops.contains(problem.op);
    if (!has_weights || problem.direction != Direction::forward) return;
    std::vector<Tensor> memory;
    const auto place = [&](std::size_t, std::size_t bytes, std::size_t) {
      memory.push_back(Tensor::empty(DataType::uint8, {static_cast<std::int64_t>(bytes)}));
      return memory.back().as<std::byte>();
    };
    const PlanRun run = run_plan(kernel, problem, one, place, PreparedFor::constants);
    if (run.holds_constants) holding.insert(std::string(to_string(problem.op)) + " " + std::string(kernel.name()));
    const std::string wrong = compare(run, kernel, one);
    if (!wrong.empty()) failures.add(kernel, text_of(kernel, problem) + ": " + wrong);
  });
  if (std::getenv("XRT_TEST_REDUCED") != nullptr) return;  // then some kernels have no case
  EXPECT_TRUE(holding.contains("conv2d winograd"));
  for (const auto& kernel : cpu_kernels(OpId::conv2d)) {
    if (kernel->name() != "onednn") continue;
    const Problem problem = parse_problem("conv2d(f32[1,32,14,14], f32[32,32,3,3]; padding=1,1)");
    if (!kernel->supports(problem, cpu_profile()).supported) continue;  // a build without it
    EXPECT_TRUE(holding.contains("conv2d onednn"));
    EXPECT_TRUE(holding.contains("linear onednn"));
  }
}

}  // namespace
}  // namespace xpuruntime::cpu_tests
