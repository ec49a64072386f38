#include "tune/reference.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/backend.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {
namespace {

class ReferenceTest : public ::testing::Test {
 protected:
  ReferenceTest() { registry.add_backend(make_cpu_backend(), KernelOrigin::built_in); }

  std::shared_ptr<const Kernel> kernel(OpId op, std::string_view name) {
    for (const auto& each : registry.kernels(op, DeviceType::cpu)) {
      if (each->name() == name) return each;
    }
    return nullptr;
  }
  /// The problem's operands with the reference kernel's results in them.
  Operands solved(const Problem& problem) {
    Operands operands = random_operands(devices, problem, 1);
    const auto plan =
        kernel(problem.op, "reference")->prepare(problem, {Device{}, devices.profile({}), devices.driver({})});
    EXPECT_TRUE(plan->run({operands.input_pointers(), operands.output_pointers(), nullptr, {}}).ok());
    return operands;
  }

  /// By a clock to which every call takes as long, be it on an emulator: numbers are what matters here.
  TuneResult tune(const Problem& problem, const std::string& incumbent) {
    TuneOptions options;
    options.isolate = false;
    options.problem_budget_s = 0.3;
    double now_us = 0;
    return Tuner(registry, [&] { return now_us += 10'000; }).tune(problem, incumbent, options);
  }

  DeviceManager devices;
  KernelRegistry registry{devices};
};

const char* const sliced[] = {"matmul(f32[70,20], f32[20,30])",
                              "matmul(f32[20,70], f32[20,30]; transpose_a=true)",
                              "matmul(f32[3,5,20], f32[300,20]; transpose_b=true)",
                              "matmul(f32[40,20]{1,40}, f32[20,30])",
                              "linear(f32[40,20], f32[30,20], f32[30])",
                              "linear(f32[2,3,20], f32[90,20])",
                              "conv2d(f32[9,4,8,8], f32[6,4,3,3]; padding=1,1)",
                              "conv2d(f32[1,4,8,8], f32[40,4,3,3], f32[40])",
                              "conv2d(f32[6,4,8,8], f32[4,1,3,3]; groups=4)",
                              "attention(f32[6,2,8,4], f32[6,2,9,4], f32[6,2,9,4])",
                              "attention(f32[6,2,8,4], f32[6,2,8,4], f32[6,2,8,4]; causal=true)",
                              "softmax(f32[30,7,20]; dim=1)",
                              "log_softmax(f32[30,20]; dim=-1)"};

class SlicedReference : public ReferenceTest, public ::testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(Problems, SlicedReference, ::testing::ValuesIn(sliced));

TEST_P(SlicedReference, AgreesWithTheWhole) {
  const Problem problem = parse_problem(GetParam());
  const Operands operands = solved(problem);
  const Reference part(registry, problem, operands, reference_work(problem) / 4);
  ASSERT_EQ(part.skipped(), "");
  EXPECT_LT(part.share(), 0.6);
  EXPECT_GT(part.share(), 0);
  const Check check = part.compare_with(operands.outputs(), {"reference"});
  EXPECT_TRUE(check.within) << check.max_rel_error << " " << check.tolerance;
}

TEST_P(SlicedReference, SeesWhatIsWrongAtBothEnds) {
  const Problem problem = parse_problem(GetParam());
  const Operands operands = solved(problem);
  const Reference part(registry, problem, operands, reference_work(problem) / 4);
  const auto last = static_cast<std::size_t>(element_count(problem.outputs[0])) - 1;
  for (const std::size_t place : {std::size_t{0}, last}) {
    float& element = operands.outputs()[0].as<float>()[place];
    const float right = element;
    element += 0.5F;
    EXPECT_FALSE(part.compare_with(operands.outputs(), {"reference"}).within) << place;
    element = right;
  }
}

TEST_F(ReferenceTest, ComparesAllWhereThatIsLittleWork) {
  const Problem problem = parse_problem("matmul(f32[70,20], f32[20,30])");
  const Operands operands = solved(problem);
  const Reference whole(registry, problem, operands, 1e9);
  EXPECT_EQ(whole.share(), 1);
  operands.outputs()[0].as<float>()[1000] += 0.5F;
  EXPECT_FALSE(whole.compare_with(operands.outputs(), {"reference"}).within);
}

TEST_F(ReferenceTest, SaysThatAPartCannotBeHad) {
  const Problem problem = parse_problem("matmul:backward(f32[70,20], f32[20,30], f32[70,30])");
  const Operands operands = random_operands(devices, problem, 1);
  const Reference none(registry, problem, operands, 10);
  EXPECT_NE(none.skipped().find("would take too long"), std::string::npos);
  EXPECT_EQ(none.compare_with(operands.outputs(), {"reference"}).skipped, none.skipped());
}

// Between its slices the reference sees nothing: there a kernel is held against another.
TEST_F(ReferenceTest, ATunerSeesWhatIsWrongInTheMiddle) {
  const Problem problem = parse_problem("matmul(f32[400,300], f32[300,400])");
  const auto real = kernel(OpId::matmul, "packed");
  FunctionKernel wrong;
  wrong.op = OpId::matmul;
  wrong.name = "wrong_in_the_middle";
  wrong.run = [this, real](const Problem& what, const RunArguments& arguments) {
    const std::vector<std::byte> workspace(real->workspace_bytes(what, devices.profile({})) + 64);
    RunArguments mine = arguments;
    mine.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) & ~63ULL);
    const auto plan = real->prepare(what, {Device{}, devices.profile({}), devices.driver({})});
    const Status status = plan->run(mine);
    arguments.outputs[0]->as<float>()[200 * 400 + 200] += 0.5F;
    return status;
  };
  registry.register_kernel(make_kernel(wrong));
  const TuneResult result = tune(problem, "packed");
  ASSERT_EQ(result.candidates.front().kernel, "wrong_in_the_middle");
  EXPECT_EQ(result.candidates.front().outcome, TuneOutcome::refused);
  EXPECT_NE(result.candidates.front().reason.find("its numbers differ from those of"), std::string::npos)
      << result.candidates.front().reason;
  EXPECT_TRUE(result.record(1).quarantine.empty());
}

// Without a reference, the winner is held against another of ours on inputs that it has not seen.
TEST_F(ReferenceTest, ATunerSeesWhoKeepsItsFirstResultWhereThereIsNoReference) {
  const Problem problem = parse_problem("matmul:backward(f32[300,300], f32[300,300], f32[300,300])");
  const auto real = kernel(OpId::matmul, "packed");
  std::vector<std::vector<float>> kept;
  FunctionKernel stale;
  stale.op = OpId::matmul;
  stale.name = "stale";
  stale.directions = Directions::both;
  stale.run = [&](const Problem& what, const RunArguments& arguments) {
    Status status;
    if (kept.empty()) {
      const std::vector<std::byte> workspace(real->workspace_bytes(what, devices.profile({})) + 64);
      RunArguments mine = arguments;
      mine.workspace = reinterpret_cast<void*>((reinterpret_cast<std::uintptr_t>(workspace.data()) + 63) & ~63ULL);
      status = real->prepare(what, {Device{}, devices.profile({}), devices.driver({})})->run(mine);
      for (const Tensor* out : arguments.outputs) kept.emplace_back(out->as<float>(), out->as<float>() + 300 * 300);
    }
    for (std::size_t i = 0; i < kept.size(); ++i) {
      std::copy(kept[i].begin(), kept[i].end(), arguments.outputs[i]->as<float>());
    }
    return status;
  };
  registry.register_kernel(make_kernel(stale));
  const TuneResult result = tune(problem, "stale");  // among equals it stays, and wins
  EXPECT_NE(result.chosen, "stale");
  EXPECT_FALSE(result.chosen.empty());
  ASSERT_EQ(result.candidates.front().kernel, "stale");
  EXPECT_EQ(result.candidates.front().outcome, TuneOutcome::refused);
  EXPECT_NE(result.candidates.front().reason.find("its numbers differ from those of"), std::string::npos)
      << result.candidates.front().reason;
}

}  // namespace
}  // namespace xpuruntime
