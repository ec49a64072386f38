#include "xpuruntime/registry/kernel.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "core/expect_error.h"
#include "device/fake_driver.h"

namespace xpuruntime {
namespace {

const Problem problem = parse_problem("relu(f32[4])");
const DeviceProfile profile;

class TokenPlan final : public Plan {
 public:
  Status run(const RunArguments&) const override { return {}; }
  std::string token() const override { return "tile=8"; }
};

Verdict small_only(const Problem& asked, const DeviceProfile&) {
  return asked.inputs[0].shape[0] <= 4 ? Verdict::yes() : Verdict::no("more than 4 elements");
}
std::unique_ptr<const Plan> prepare_token(const Problem&, const PrepareContext&) {
  return std::make_unique<TokenPlan>();
}
std::uint64_t hundred_bytes(const Problem&, const DeviceProfile&) { return 100; }
bool likes_all(const Problem&, const DeviceProfile&) { return true; }

constexpr KernelSpec full_row = {OpId::relu, "full", small_only, prepare_token, hundred_bytes, likes_all, false};
constexpr KernelSpec plain_row = {OpId::relu, "plain", small_only, prepare_token};

TEST(TableKernel, AnswersAsItsRowDoes) {
  const auto kernel = make_kernel(full_row, DeviceType::opencl);
  EXPECT_EQ(kernel->op(), OpId::relu);
  EXPECT_EQ(kernel->name(), "full");
  EXPECT_EQ(kernel->device_type(), DeviceType::opencl);
  EXPECT_TRUE(kernel->supports(problem, profile).supported);
  EXPECT_EQ(kernel->supports(parse_problem("relu(f32[5])"), profile).reason, "more than 4 elements");
  EXPECT_EQ(kernel->workspace_bytes(problem, profile), 100u);
  EXPECT_TRUE(kernel->prefers(problem, profile));
  EXPECT_FALSE(kernel->deterministic());
}

TEST(TableKernel, NeedsNothingAndPrefersNothingWhereTheRowIsSilent) {
  const auto kernel = make_kernel(plain_row, DeviceType::cpu);
  EXPECT_EQ(kernel->workspace_bytes(problem, profile), 0u);
  EXPECT_FALSE(kernel->prefers(problem, profile));
  EXPECT_TRUE(kernel->deterministic());
}

const Problem backward = parse_problem("relu:backward(f32[4], f32[4])");

TEST(TableKernel, IsForwardOnlyUnlessItsRowDeclaresMore) {
  const auto reason = [](const KernelSpec& row, const Problem& asked) {
    return make_kernel(row, DeviceType::cpu)->supports(asked, profile).reason;
  };
  EXPECT_EQ(reason(plain_row, problem), "");
  EXPECT_EQ(reason(plain_row, backward), "forward only");
  constexpr KernelSpec both = with_backward(plain_row);
  EXPECT_EQ(reason(both, problem), "");
  EXPECT_EQ(reason(both, backward), "");
  EXPECT_EQ(reason(both, parse_problem("relu(f32[5])")), "more than 4 elements");
  KernelSpec gradient = plain_row;
  gradient.directions = Directions::backward;
  EXPECT_EQ(reason(gradient, problem), "backward only");
  EXPECT_EQ(reason(gradient, backward), "");
}

TEST(TableKernel, HasTheVersionItIsGiven) {
  EXPECT_EQ(make_kernel(plain_row, DeviceType::cpu, "")->version(), "");  // the library's own
  EXPECT_EQ(make_kernel(plain_row, DeviceType::cpu, "1.2 sha256:00")->version(), "1.2 sha256:00");
  EXPECT_FALSE(is_versioned(make_kernel(plain_row, DeviceType::cpu)->version()));
}

TEST(TableKernel, PreparesThroughItsRow) {
  testing::FakeDriver driver;
  const auto plan = make_kernel(plain_row, DeviceType::cpu)->prepare(problem, {{}, profile, driver});
  EXPECT_EQ(plan->token(), "tile=8");
}

FunctionKernel function_kernel(std::function<Status(const Problem&, const RunArguments&)> run) {
  FunctionKernel function;
  function.op = OpId::relu;
  function.name = "mine";
  function.run = std::move(run);
  return function;
}

Status run_once(FunctionKernel function) {
  testing::FakeDriver driver;
  return make_kernel(std::move(function))->prepare(problem, {{}, profile, driver})->run({});
}

TEST(FunctionKernel, SupportsEverythingUnlessItSaysOtherwise) {
  FunctionKernel function = function_kernel([](const Problem&, const RunArguments&) { return Status(); });
  EXPECT_TRUE(make_kernel(function)->supports(problem, profile).supported);
  function.supports = small_only;
  EXPECT_FALSE(make_kernel(function)->supports(parse_problem("relu(f32[5])"), profile).supported);
}

TEST(FunctionKernel, IsForwardOnlyUnlessItDeclaresMore) {
  FunctionKernel function = function_kernel([](const Problem&, const RunArguments&) { return Status(); });
  EXPECT_EQ(make_kernel(function)->supports(backward, profile).reason, "forward only");
  function.supports = [](const Problem&, const DeviceProfile&) { return Verdict::yes(); };  // what a user writes
  EXPECT_EQ(make_kernel(function)->supports(backward, profile).reason, "forward only");
  function.directions = Directions::both;
  EXPECT_TRUE(make_kernel(function)->supports(backward, profile).supported);
}

class SaysYes final : public Kernel {
 public:
  OpId op() const override { return OpId::relu; }
  std::string_view name() const override { return "says_yes"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  Verdict accepts(const Problem&, const DeviceProfile&) const override { return Verdict::yes(); }
  std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view) const override {
    return nullptr;
  }
};

TEST(Kernel, IsForwardOnlyAndUnversionedUnlessItSaysOtherwise) {
  const SaysYes kernel;
  EXPECT_TRUE(kernel.supports(problem, profile).supported);
  EXPECT_EQ(kernel.supports(backward, profile).reason, "forward only");
  EXPECT_FALSE(is_versioned(kernel.version()));
}

TEST(Kernel, ThatMakesNoPlanFailsToPrepare) {
  testing::FakeDriver driver;
  EXPECT_THROW(SaysYes().prepare(problem, {{}, profile, driver}), Error);
}

TEST(Kernel, WithOnePlanFailsToPrepareAnother) {
  testing::FakeDriver driver;
  const auto kernel = make_kernel(function_kernel([](const Problem&, const RunArguments&) { return Status(); }));
  const PrepareContext context{{}, profile, driver};
  EXPECT_EQ(kernel->prepare(problem, context)->token(), "");
  EXPECT_TRUE(kernel->variants(problem, context).empty());
  try {
    kernel->prepare(problem, context, "tile=4");
    FAIL() << "it made a plan";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::not_supported);
    EXPECT_STREQ(error.what(), "[prepare] it plans '' here");
  }
}

TEST(FunctionKernel, WithoutAVersionIsToldFromEveryOther) {
  const FunctionKernel function = function_kernel([](const Problem&, const RunArguments&) { return Status(); });
  const auto first = make_kernel(function), second = make_kernel(function);
  EXPECT_NE(first->version(), second->version());
  EXPECT_FALSE(is_versioned(first->version()));
  EXPECT_EQ(written_version(first->version()), "unversioned");
}

TEST(FunctionKernel, CarriesItsFields) {
  FunctionKernel function = function_kernel([](const Problem&, const RunArguments&) { return Status(); });
  function.workspace_bytes = 64;
  function.deterministic = false;
  function.device_type = DeviceType::npu;
  function.version = "2024-05";
  const auto kernel = make_kernel(function);
  EXPECT_EQ(kernel->workspace_bytes(problem, profile), 64u);
  EXPECT_FALSE(kernel->deterministic());
  EXPECT_EQ(kernel->device_type(), DeviceType::npu);
  EXPECT_EQ(kernel->name(), "mine");
  EXPECT_EQ(kernel->version(), "2024-05");
  EXPECT_EQ(written_version(kernel->version()), "2024-05");
  function.version = "unversioned";
  expect_error(ErrorCode::invalid_argument, "must not begin with 'unversioned'", [&] { make_kernel(function); });
}

TEST(FunctionKernel, RunsWithItsProblem) {
  std::string seen;
  EXPECT_TRUE(run_once(function_kernel([&](const Problem& given, const RunArguments&) {
                seen = to_string(given);
                return Status();
              })).ok());
  EXPECT_EQ(seen, to_string(problem));
}

TEST(FunctionKernel, HandsItsStatusOn) {
  const Status status = run_once(
      function_kernel([](const Problem&, const RunArguments&) { return Status(ErrorCode::timeout, "too slow"); }));
  EXPECT_EQ(status.code(), ErrorCode::timeout);
  EXPECT_EQ(status.message(), "too slow");
}

TEST(FunctionKernel, TurnsWhatItThrowsIntoAStatus) {
  const Status known = run_once(
      function_kernel([](const Problem&, const RunArguments&) -> Status { throw std::runtime_error("out of luck"); }));
  EXPECT_EQ(known.code(), ErrorCode::device_error);
  EXPECT_NE(known.message().find("out of luck"), std::string::npos);
  const Status unknown = run_once(function_kernel([](const Problem&, const RunArguments&) -> Status { throw 42; }));
  EXPECT_EQ(unknown.code(), ErrorCode::device_error);
}

TEST(FunctionKernel, KeepsItsFunctionsAliveInItsPlans) {
  auto counter = std::make_shared<int>(0);
  testing::FakeDriver driver;
  std::unique_ptr<const Plan> plan;
  {
    auto kernel = make_kernel(function_kernel([counter](const Problem&, const RunArguments&) {
      ++*counter;
      return Status();
    }));
    plan = kernel->prepare(problem, {{}, profile, driver});
  }
  EXPECT_TRUE(plan->run({}).ok());
  EXPECT_EQ(*counter, 1);
}

TEST(FunctionKernel, NeedsARunFunction) {
  expect_invalid("kernel 'mine' has no run function", [] { make_kernel(function_kernel(nullptr)); });
}

}  // namespace
}  // namespace xpuruntime
