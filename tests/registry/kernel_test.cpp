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

constexpr KernelSpec full_row = {.ops = {OpId::relu, OpId::gelu},
                                 .name = "full",
                                 .summary = "says all",
                                 .dtypes = fast_floats,
                                 .prepare = prepare_token,
                                 .supports = small_only,
                                 .workspace_bytes = hundred_bytes,
                                 .deterministic = false};
constexpr KernelSpec plain_row = {OpId::relu, "plain", "says little", any_dtype, prepare_token, small_only};

TEST(TableKernel, AnswersAsItsRowDoes) {
  const auto kernel = make_kernel(full_row, OpId::relu, DeviceType::opencl);
  EXPECT_EQ(kernel->op(), OpId::relu);
  EXPECT_EQ(make_kernel(full_row, OpId::gelu, DeviceType::opencl)->op(), OpId::gelu);
  EXPECT_EQ(kernel->name(), "full");
  EXPECT_EQ(kernel->device_type(), DeviceType::opencl);
  EXPECT_TRUE(kernel->supports(problem, profile).supported);
  EXPECT_EQ(kernel->supports(parse_problem("relu(f32[5])"), profile).reason, "more than 4 elements");
  EXPECT_EQ(kernel->workspace_bytes(problem, profile), 100u);
  EXPECT_FALSE(kernel->deterministic());
}

TEST(TableKernel, NeedsNothingWhereTheRowIsSilent) {
  const auto kernel = make_kernel(plain_row, OpId::relu, DeviceType::cpu);
  EXPECT_EQ(kernel->workspace_bytes(problem, profile), 0u);
  EXPECT_TRUE(kernel->deterministic());
}

TEST(TableKernel, IsAskedOnlyAboutDtypesAndAlignmentsOfItsRow) {
  const auto reason = [](const KernelSpec& row, const char* text) {
    return make_kernel(row, OpId::relu, DeviceType::cpu)->supports(parse_problem(text), profile).reason;
  };
  // Both are refused before the row's function, which would refuse the five elements too.
  EXPECT_EQ(reason(full_row, "relu(f64[5])"), "input 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason(full_row, "relu(f32[5]) -> f64[5]"), "output 0 is f64, and this kernel takes f32, f16 and bf16");
  EXPECT_EQ(reason(full_row, "relu(f32[5]/2)"), "input 0 is not aligned to its elements");
  EXPECT_EQ(reason(plain_row, "relu(f64[4])"), "");
  KernelSpec row = full_row;
  row.any_alignment = true;
  row.outputs = DataType::float64;
  row.supports = nullptr;
  EXPECT_EQ(reason(row, "relu(f32[5]/2) -> f64[5]"), "");
  EXPECT_EQ(reason(row, "relu(f32[5])"), "output 0 is f32, and this kernel takes f64");
}

TEST(OpList, HoldsOneOpOrAFamilyOfUpToSixteen) {
  EXPECT_EQ(OpList(OpId::relu).size(), 1u);
  constexpr OpList family = {OpId::relu, OpId::gelu};
  EXPECT_TRUE(family.contains(OpId::gelu));
  EXPECT_FALSE(family.contains(OpId::silu));
  expect_invalid("at most 16 ops", [] {
    const OpId op = OpId::relu;
    OpList{op, op, op, op, op, op, op, op, op, op, op, op, op, op, op, op, op};
  });
}

const Problem backward = parse_problem("relu:backward(f32[4], f32[4])");

TEST(TableKernel, IsForwardOnlyUnlessItsRowDeclaresMore) {
  const auto reason = [](const KernelSpec& row, const Problem& asked) {
    return make_kernel(row, OpId::relu, DeviceType::cpu)->supports(asked, profile).reason;
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

TEST(TableKernel, NeverSeesAProblemWithWhatItsRowDoesNotTake) {
  KernelSpec row = {OpId::matmul, "plain", "says little", any_dtype, prepare_token};
  const auto reason = [&](const char* text) {
    return make_kernel(row, OpId::matmul, DeviceType::cpu)->supports(parse_problem(text), profile).reason;
  };
  row.directions = Directions::both;
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4])"), "");
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4]; alpha=2)"), "does not compute alpha");
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4], f32[4])"), "does not compute c");
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4], none, f32[1])"), "does not compute scale_a");
  EXPECT_EQ(reason("matmul:backward(f32[2,3], f32[3,4], f32[2,4])"), "");  // the gradient is no c
  row = taking("alpha|c", row);
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4], f32[4]; alpha=2)"), "");
  EXPECT_EQ(reason("matmul(f32[2,3], f32[3,4], f32[4]; alpha=2 beta=0)"), "does not compute beta");
  EXPECT_EQ(reason("matmul:backward(f32[2,3], f32[3,4], f32[2,4]; alpha=2)"), "no gradients with alpha");
  row = taking("alpha|transpose_a", row);
  expect_invalid("takes 'transpose_a', which is not an opt-in input or attribute of matmul",
                 [&] { make_kernel(row, OpId::matmul, DeviceType::cpu); });
}

TEST(TableKernel, HasTheVersionItIsGiven) {
  EXPECT_EQ(make_kernel(plain_row, OpId::relu, DeviceType::cpu, "")->version(), "");  // the library's own
  EXPECT_EQ(make_kernel(plain_row, OpId::relu, DeviceType::cpu, "1.2 sha256:00")->version(), "1.2 sha256:00");
  EXPECT_FALSE(is_versioned(make_kernel(plain_row, OpId::relu, DeviceType::cpu)->version()));
}

TEST(TableKernel, PreparesThroughItsRow) {
  testing::FakeDriver driver;
  const auto plan = make_kernel(plain_row, OpId::relu, DeviceType::cpu)->prepare(problem, {{}, profile, driver});
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

TEST(FunctionKernel, NeverSeesAProblemWithWhatItDoesNotTake) {
  FunctionKernel function = function_kernel([](const Problem&, const RunArguments&) { return Status(); });
  function.op = OpId::attention;
  const Problem asked = parse_problem("attention(f32[1,1,1,4], f32[1,1,3,4], f32[1,1,3,4]; lse=true)");
  EXPECT_EQ(make_kernel(function)->supports(asked, profile).reason, "does not compute lse");
  function.takes = "lse";
  EXPECT_TRUE(make_kernel(function)->supports(asked, profile).supported);
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
  EXPECT_EQ(error_text(ErrorCode::not_supported, [&] { kernel->prepare(problem, context, "tile=4"); }),
            "[prepare] it plans '' here");
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
