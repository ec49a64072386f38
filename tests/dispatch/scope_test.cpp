#include <thread>

#include "dispatch/fixture.h"

namespace xpuruntime {
namespace {

class Scopes : public DispatchTest {
 protected:
  Scopes() {
    add_kernel("one");
    add_kernel("two");
  }
  static KernelPolicy preferring(const char* kernel) {
    KernelPolicy policy;
    return policy.set("relu", kernel);
  }
  std::string chosen() { return dispatcher().decide(relu.call()).kernel; }

  Relu relu;
};

TEST_F(Scopes, APolicyHoldsForAllThreadsUntilItIsChanged) {
  dispatcher().set_policy(preferring("one"));
  EXPECT_EQ(chosen(), "one");
  std::thread([&] { EXPECT_EQ(chosen(), "one"); }).join();
  dispatcher().set_policy(preferring("two"));
  EXPECT_EQ(chosen(), "two");
}

TEST_F(Scopes, APolicyThatNamesNoStrategyHasTheDefaultOne) {
  dispatcher().set_default_strategy(Strategy::best_performance);
  dispatcher().set_policy(preferring("one"));
  EXPECT_EQ(dispatcher().policy().auto_strategy, Strategy::best_performance);
  KernelPolicy named;
  named.auto_strategy = Strategy::first_supported;
  const ScopedPolicy scope(dispatcher(), named);
  EXPECT_EQ(dispatcher().policy().auto_strategy, Strategy::first_supported);
}

TEST_F(Scopes, LayersNestAndRestore) {
  dispatcher().set_policy(preferring("one"));
  {
    KernelPolicy only_limits;
    only_limits.workspace_limit_bytes = 7;
    const ScopedPolicy outer(dispatcher(), only_limits);
    EXPECT_EQ(chosen(), "one");  // what the layer leaves unset stays
    EXPECT_EQ(dispatcher().policy().workspace_limit_bytes, 7u);
    {
      const ScopedPolicy inner(dispatcher(), preferring("two"));
      EXPECT_EQ(chosen(), "two");
      EXPECT_EQ(dispatcher().policy().workspace_limit_bytes, 7u);
    }
    EXPECT_EQ(chosen(), "one");
  }
  EXPECT_EQ(dispatcher().policy().workspace_limit_bytes, std::nullopt);
}

TEST_F(Scopes, APolicyWithManyRulesIsNeitherCopiedNorReadAnewToEnterItAgain) {
  KernelPolicy policy;
  for (std::int64_t n = 1; n <= 2000; ++n) {
    PolicyRule rule = {OpId::relu, {}, {n == 8 ? "one" : "two"}, ""};
    rule.when["inputs.0.shape"] = {{Comparison::equal, {RuleValue{std::vector<std::int64_t>{n}}}}};
    policy.rules.push_back(rule);
  }
  const ScopePtr first = dispatcher().layered_scope(policy);
  EXPECT_TRUE(first->policy.rules.same_as(policy.rules));
  EXPECT_EQ(dispatcher().layered_scope(policy), first);
  // Equal rules in another place are the same scope; other rules are not.
  KernelPolicy equal = policy;
  equal.rules = std::vector<PolicyRule>(policy.rules.begin(), policy.rules.end());
  EXPECT_EQ(dispatcher().layered_scope(equal), first);
  equal.rules.push_back({OpId::relu, {}, {"two"}, ""});
  EXPECT_NE(dispatcher().layered_scope(equal), first);
  const ScopedPolicy scope(dispatcher(), first);
  EXPECT_EQ(chosen(), "one");
}

TEST_F(Scopes, RestoreOnExceptions) {
  dispatcher().set_policy(preferring("one"));
  EXPECT_THROW(
      {
        const ScopedPolicy scope(dispatcher(), preferring("two"));
        throw std::runtime_error("out");
      },
      std::runtime_error);
  EXPECT_EQ(chosen(), "one");
}

TEST_F(Scopes, HoldForTheirThreadAlone) {
  dispatcher().set_policy(preferring("one"));
  const ScopedPolicy scope(dispatcher(), preferring("two"));
  EXPECT_EQ(chosen(), "two");
  std::thread([&] { EXPECT_EQ(chosen(), "one"); }).join();
}

TEST_F(Scopes, CanBeHandedToAWorker) {
  ScopePtr captured;
  {
    const ScopedPolicy scope(dispatcher(), preferring("two"));
    captured = dispatcher().current_scope();
  }
  std::thread([&] {
    const ScopedPolicy scope(dispatcher(), captured);
    EXPECT_EQ(chosen(), "two");
  }).join();
  EXPECT_NE(chosen(), "one");
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { const ScopedPolicy scope(dispatcher(), ScopePtr()); }),
             "null scope");
}

TEST_F(Scopes, AreInternedByContent) {
  const ScopedPolicy a(dispatcher(), preferring("one"));
  const std::uint32_t id = dispatcher().current_scope()->id;
  const ScopedPolicy b(dispatcher(), preferring("two"));
  EXPECT_NE(dispatcher().current_scope()->id, id);
  const ScopedPolicy c(dispatcher(), preferring("one"));
  EXPECT_EQ(dispatcher().current_scope()->id, id);
}

TEST_F(Scopes, ThousandsOfPoliciesDoNotPileUpOrBreakTheOneInForce) {
  dispatcher().set_policy(preferring("one"));
  for (std::uint64_t i = 0; i < 3000; ++i) {
    KernelPolicy policy = preferring("two");
    policy.workspace_limit_bytes = i;
    const ScopedPolicy scope(dispatcher(), policy);
    ASSERT_EQ(chosen(), "two");
  }
  EXPECT_EQ(chosen(), "one");
}

TEST_F(Scopes, BestPerformanceUsesTheTimesRecordedBeforeItWasEntered) {
  const Problem problem = dispatcher().decide(relu.call()).problem;
  dispatcher().statistics().record(problem, "one", 5, "1");
  dispatcher().statistics().record(problem, "two", 9, "1");
  KernelPolicy policy;
  policy.auto_strategy = Strategy::best_performance;
  const ScopedPolicy scope(dispatcher(), policy);
  EXPECT_EQ(chosen(), "one");
  dispatcher().statistics().record(problem, "two", 0.001, "1");  // later times change nothing here
  runtime.registry().invalidate();
  EXPECT_EQ(chosen(), "one");
}

TEST_F(Scopes, PoliciesThatKeepChangingNeverFailACall) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = t; !stop; i += 2) {
        KernelPolicy policy;
        policy.workspace_limit_bytes = i;
        dispatcher().set_policy(policy);
      }
    });
  }
  std::vector<std::unique_ptr<Relu>> shapes;
  for (int i = 1; i <= 100; ++i) shapes.push_back(std::make_unique<Relu>(i));
  for (int round = 0; round < 60; ++round) {
    for (const auto& shape : shapes) ASSERT_NO_THROW(dispatcher().dispatch(shape->call()));
  }
  stop = true;
  for (auto& thread : threads) thread.join();
}

TEST_F(Scopes, APolicyFilledInByHandIsCheckedWhenItIsPutInForce) {
  KernelPolicy policy;
  policy.preferences[OpId::relu] = {{"nonesuch"}, true};
  EXPECT_HAS(error_text(ErrorCode::unknown_name, [&] { dispatcher().set_policy(policy); }), "nonesuch");
  policy.preferences[OpId::relu] = {{"one", "two"}, true};
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { dispatcher().set_policy(policy); }), "several kernels");
  policy.preferences[OpId::relu] = {};
  EXPECT_HAS(error_text(ErrorCode::invalid_argument, [&] { const ScopedPolicy s(dispatcher(), policy); }), "no kernel");
  EXPECT_NE(chosen(), "");
}

}  // namespace
}  // namespace xpuruntime
