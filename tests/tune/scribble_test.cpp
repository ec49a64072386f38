#include <gtest/gtest.h>

#include "tune/made_up_kernels.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime {
namespace {

using testing::relu;

const Problem problem = parse_problem("relu(f32[64])");

/// Our own CPU kernels and an honest one of somebody else's, next to one that writes to its inputs. By the clock all
/// take the same time, so that nobody leaves the race early.
class Scribble : public ::testing::TestWithParam<bool> {
 protected:
  Scribble() {
    registry.add_backend(make_cpu_backend(), KernelOrigin::built_in);
    options.isolate = GetParam();
    options.probe_timeout_s = 5;
    options.problem_budget_s = 100;  // of that clock
    add("honest", relu);
  }

  void add(const std::string& name, std::function<Status(const RunArguments&)> work) {
    FunctionKernel kernel;
    kernel.op = OpId::relu;
    kernel.name = name;
    kernel.run = [work = std::move(work)](const Problem&, const RunArguments& arguments) { return work(arguments); };
    registry.register_kernel(make_kernel(std::move(kernel)));
  }
  /// From its n-th call in this process on.
  void add_scribbler(int from_call) {
    add("scribbler", [this, from_call](const RunArguments& arguments) {
      const Status status = relu(arguments);
      if (++calls >= from_call) const_cast<float*>(arguments.inputs[0]->as<const float>())[5] += 1;
      return status;
    });
  }
  TuneResult tune() {
    return Tuner(registry, [now = 0.0]() mutable { return now += 1000; }).tune(problem, "reference", options);
  }
  static const TunedCandidate& row(const TuneResult& result, const std::string& kernel) {
    for (const TunedCandidate& candidate : result.candidates) {
      if (candidate.kernel == kernel) return candidate;
    }
    ADD_FAILURE() << "no row of " << kernel;
    return result.candidates.front();
  }

  int calls = 0;
  DeviceManager devices;
  KernelRegistry registry{devices};
  TuneOptions options;
};

TEST_P(Scribble, InTheFirstCallIsHeldAgainstTheOneWhoDidIt) {
  add_scribbler(1);
  const TuneResult result = tune();
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(row(result, "scribbler").reason, "it wrote to its inputs");
  EXPECT_EQ(row(result, "honest").outcome, TuneOutcome::lost);
  const TuneRecord record = result.record(1);
  ASSERT_EQ(record.quarantine.size(), 1u);
  EXPECT_EQ(record.quarantine[0].kernel, "scribbler");
  EXPECT_EQ(calls, GetParam() ? 0 : 1);
}

TEST_P(Scribble, InTheRaceBrandsNobodyAndLetsNoneOfTheOthersWin) {
  add_scribbler(3);
  const TuneResult result = tune();
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_GE(calls, 3);
  for (const char* kernel : {"scribbler", "honest"}) {
    EXPECT_EQ(row(result, kernel).outcome, TuneOutcome::refused) << kernel;
    EXPECT_EQ(row(result, kernel).reason, "an input was overwritten while it raced") << kernel;
  }
  EXPECT_TRUE(result.record(1).quarantine.empty());
  EXPECT_GT(row(result, "reference").runs, 0);
}

TEST_P(Scribble, ThatMakesAnotherFailBrandsNobody) {
  add_scribbler(3);
  add("picky", [](const RunArguments& arguments) {
    const float* const in = arguments.inputs[0]->as<const float>();
    return in[5] > 1 ? Status(ErrorCode::device_error, "out of range") : relu(arguments);
  });
  const TuneResult result = tune();
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_TRUE(result.record(1).quarantine.empty());
}

INSTANTIATE_TEST_SUITE_P(Probed, Scribble, ::testing::Bool(),
                         [](const auto& info) { return std::string(info.param ? "Yes" : "No"); });

}  // namespace
}  // namespace xpuruntime
