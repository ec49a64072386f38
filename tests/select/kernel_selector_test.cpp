#include "xpuruntime/select/kernel_selector.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "core/expect_error.h"
#include "device/fake_driver.h"
#include "select/made_up_kernels.h"

namespace xpuruntime {
namespace {

bool holds(const Problem&, const DeviceProfile&) { return true; }
bool fails(const Problem&, const DeviceProfile&) { return false; }
constexpr Device npu0{DeviceType::npu, 0};

class KernelSelectorTest : public ::testing::Test {
 protected:
  KernelSelectorTest() {
    devices.add_driver(std::make_shared<testing::FakeDriver>());
    for (const char* name : {"c", "b", "a"}) {  // the newest stands first
      auto kernel = std::make_shared<testing::MadeUpKernel>(name);
      kernel->type = DeviceType::npu;
      kernel->code = "1";
      registry.register_kernel(kernel);
    }
    selector = registry.get_or_create_selector(npu0);
  }

  std::string choose() const { return selector->select(problem, {}).decision.kernel; }
  std::vector<std::string> rule_names() const {
    std::vector<std::string> names;
    for (const Rule& rule : selector->rules(OpId::matmul)) names.push_back(rule.name);
    return names;
  }

  DeviceManager devices;
  KernelRegistry registry{devices};
  std::shared_ptr<KernelSelector> selector;
  Problem problem = parse_problem("matmul(f32[8,8], f32[8,8]) @npu:0");
};

TEST_F(KernelSelectorTest, SaysThePrecisionOfTheProblemAsItIs) {
  for (const DataType dtype : {DataType::bfloat16, DataType::float64, DataType::int32}) {
    const std::string name(to_string(dtype)), tensor = name + "[8,8]";
    const Problem typed = parse_problem("matmul(" + tensor + ", " + tensor + ") @npu:0");
    EXPECT_EQ(selector->select(typed, {}).decision.precision, (Precision{dtype, dtype, "the inputs are " + name}));
  }
}

TEST_F(KernelSelectorTest, ChoosesAmongTheRegisteredKernels) {
  EXPECT_EQ(choose(), "a");
  registry.unregister_kernel(OpId::matmul, DeviceType::npu, "a");
  EXPECT_EQ(choose(), "b");
}

TEST_F(KernelSelectorTest, FollowsAUserRule) {
  const auto id = selector->register_rule(OpId::matmul, holds, "c", 0, "mine");
  const Selection selection = selector->select(problem, {});
  EXPECT_EQ(selection.decision.kernel, "c");
  EXPECT_EQ(selection.decision.level, Level::rule);
  EXPECT_EQ(selection.decision.because, "mine matches");
  EXPECT_TRUE(selector->unregister_rule(id));
  EXPECT_EQ(choose(), "a");
  EXPECT_FALSE(selector->unregister_rule(id));
}

TEST_F(KernelSelectorTest, TriesHigherPrioritiesFirstThenTheOrderOfRegistration) {
  selector->register_rule(OpId::matmul, fails, "a", 0, "first");
  selector->register_rule(OpId::matmul, fails, "a", 5, "urgent");
  selector->register_rule(OpId::matmul, fails, "a", 0, "second");
  selector->register_rule(OpId::matmul, fails, "a", -1, "late");
  selector->register_rule(OpId::matmul, fails, "a", 5, "urgent too");
  EXPECT_EQ(rule_names(), (std::vector<std::string>{"urgent", "urgent too", "first", "second", "late"}));
}

TEST_F(KernelSelectorTest, LetsTheFirstMatchOfTheHighestPriorityWin) {
  selector->register_rule(OpId::matmul, holds, "b", 0);
  EXPECT_EQ(choose(), "b");
  selector->register_rule(OpId::matmul, holds, "a", 0);
  EXPECT_EQ(choose(), "b");
  selector->register_rule(OpId::matmul, fails, "a", 9);
  EXPECT_EQ(choose(), "b");
  selector->register_rule(OpId::matmul, holds, "c", 1);
  EXPECT_EQ(choose(), "c");
}

TEST_F(KernelSelectorTest, NamesARuleThatHasNoName) {
  const auto id = selector->register_rule(OpId::matmul, holds, "b");
  EXPECT_EQ(rule_names(), std::vector<std::string>{"rule " + std::to_string(id)});
}

TEST_F(KernelSelectorTest, KeepsRulesOfOtherOpsApart) {
  selector->register_rule(OpId::softmax, holds, "reference");
  EXPECT_TRUE(selector->rules(OpId::matmul).empty());
  EXPECT_EQ(choose(), "a");
}

TEST_F(KernelSelectorTest, RefusesRulesThatCouldNeverWork) {
  expect_invalid("the condition is empty", [&] { selector->register_rule(OpId::matmul, {}, "b"); });
  expect_error(ErrorCode::unknown_name, "did you mean cublasLt",
               [&] { selector->register_rule(OpId::matmul, holds, "cublasLT2"); });
  EXPECT_TRUE(selector->rules(OpId::matmul).empty());
}

TEST_F(KernelSelectorTest, MakesCachedDecisionsStaleWithEveryChangeOfRules) {
  const auto before = registry.generation();
  const auto id = selector->register_rule(OpId::matmul, holds, "b");
  const auto between = registry.generation();
  EXPECT_NE(between, before);
  selector->unregister_rule(id);
  EXPECT_NE(registry.generation(), between);
}

TEST_F(KernelSelectorTest, LetsAConditionUseTheSelectorItself) {
  // No lock is held while it runs: this would hang otherwise.
  selector->register_rule(
      OpId::matmul, [&](const Problem&, const DeviceProfile&) { return selector->rules(OpId::matmul).size() == 1; },
      "b");
  EXPECT_EQ(choose(), "b");
}

TEST_F(KernelSelectorTest, RefusesAProblemOfAnotherDevice) {
  expect_invalid("the problem is on npu:1, this selector is for npu:0",
                 [&] { selector->select(parse_problem("matmul(f32[8,8], f32[8,8]) @npu:1"), {}); });
}

TEST_F(KernelSelectorTest, HandsMeasurementsAndExclusionsOn) {
  Measurements::Times times;
  times[problem]["a@1"].add(1);
  times[problem]["b@1"].add(5);
  times[problem]["c@1"].add(3);
  const Measurements measurements(times);
  KernelPolicy policy;
  policy.auto_strategy = Strategy::best_performance;
  const Exclusion exclusions[] = {{"a", "it failed before"}};
  EXPECT_EQ(selector->select(problem, policy, &measurements).decision.kernel, "a");
  EXPECT_EQ(selector->select(problem, policy, &measurements, exclusions).decision.kernel, "c");
}

TEST_F(KernelSelectorTest, ServesManyThreadsWhileRulesComeAndGo) {
  constexpr int writers = 2;
  constexpr int rounds = 150;
  std::atomic<int> running = writers;
  std::vector<std::thread> threads;
  for (int writer = 0; writer < writers; ++writer) {
    threads.emplace_back([&] {
      for (int i = 0; i < rounds; ++i) {
        const auto id = selector->register_rule(OpId::matmul, holds, "b", i % 3);
        EXPECT_TRUE(selector->unregister_rule(id));
      }
      --running;
    });
  }
  std::atomic<int> wrong = 0;
  for (int reader = 0; reader < 2; ++reader) {
    threads.emplace_back([&] {
      while (running > 0) {
        const Decision decision = selector->select(problem, {}).decision;
        const bool by_rule = decision.kernel == "b" && decision.level == Level::rule;
        const bool by_table = decision.kernel == "a" && decision.level == Level::strategy;
        if (!by_rule && !by_table) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(selector->rules(OpId::matmul).empty());
}

// The registry's side.

TEST_F(KernelSelectorTest, IsTheSameObjectForADeviceEveryTime) {
  EXPECT_EQ(registry.get_or_create_selector(npu0), selector);
  EXPECT_NE(registry.get_or_create_selector({DeviceType::npu, 1}), selector);
  EXPECT_EQ(registry.get_all_selectors().size(), 2u);
}

TEST_F(KernelSelectorTest, IsMadeOnceWhenManyThreadsAsk) {
  registry.clear();
  std::vector<std::shared_ptr<KernelSelector>> made(8);
  std::vector<std::thread> threads;
  for (auto& place : made) threads.emplace_back([&] { place = registry.get_or_create_selector(npu0); });
  for (std::thread& thread : threads) thread.join();
  for (const auto& each : made) EXPECT_EQ(each, made.front());
}

TEST_F(KernelSelectorTest, StaysUsableForWhoHoldsItWhenTheRegistryIsCleared) {
  selector->register_rule(OpId::matmul, holds, "c");
  registry.clear();
  EXPECT_TRUE(registry.get_all_selectors().empty());
  EXPECT_EQ(choose(), "c");
  EXPECT_TRUE(registry.get_or_create_selector(npu0)->rules(OpId::matmul).empty());
}

TEST_F(KernelSelectorTest, IsNotMadeForADeviceThatIsNotThere) {
  expect_error(ErrorCode::not_supported, "npu:9 does not exist", [&] {
    registry.get_or_create_selector({DeviceType::npu, 9});
  });
  expect_error(ErrorCode::not_supported, "cuda:0 is not available", [&] {
    registry.get_or_create_selector({DeviceType::nvidia, 0});
  });
  EXPECT_EQ(registry.get_all_selectors().size(), 1u);
}

// Capabilities: the fake device computes in float16, not in bfloat16, and has no matrix units.

TEST_F(KernelSelectorTest, OffersOnlyWhatTheDeviceComputesIn) {
  for (const OpId op : {OpId::matmul, OpId::conv2d}) {
    KernelCapability full = KernelCapability::create_float32(), half = KernelCapability::create_float16(false);
    full.is_available = half.is_available = op == OpId::matmul;  // the registry has kernels for it alone
    EXPECT_EQ(selector->find_kernel_capability(op, KernelDtype::float32), full);
    EXPECT_EQ(selector->find_kernel_capability(op, KernelDtype::float16), half);
    EXPECT_EQ(selector->find_kernel_capability(op, KernelDtype::bfloat16), std::nullopt);
  }
  EXPECT_TRUE(selector->find_kernel_capability(OpId::relu, KernelDtype::float32));
  EXPECT_FALSE(selector->find_kernel_capability(OpId::relu, KernelDtype::float16));
}

TEST_F(KernelSelectorTest, TakesACapabilityOfTheCallersAndReplacesAnOldOne) {
  KernelCapability capability = KernelCapability::create_bfloat16();
  selector->register_kernel_capability(OpId::matmul, capability);
  EXPECT_EQ(selector->find_kernel_capability(OpId::matmul, KernelDtype::bfloat16), capability);
  capability.is_available = false;
  selector->register_kernel_capability(OpId::matmul, capability);
  EXPECT_EQ(selector->find_kernel_capability(OpId::matmul, KernelDtype::bfloat16), capability);
}

}  // namespace
}  // namespace xpuruntime
