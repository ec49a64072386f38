#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "tune/tuner_fixture.h"
#include "xpuruntime/device/workspace_pool.h"

// The check of the winner, on inputs that it has not seen.
namespace xpuruntime {
namespace {

using testing::off_by_a_little;
using testing::relu;
using testing::TunerTest;

std::function<Status(const RunArguments&)> returns_its_first_result(std::vector<float>& kept) {
  return [&kept](const RunArguments& arguments) {
    float* const out = arguments.outputs[0]->as<float>();
    if (!kept.empty()) {
      std::copy(kept.begin(), kept.end(), out);
      return Status();
    }
    const Status status = relu(arguments);
    kept.assign(out, out + 64);
    return status;
  };
}

// The race has one set of inputs, on which what is kept from the first call is right for ever.
TEST_F(TunerTest, FindsOutWhoKeepsItsFirstResult) {
  for (const bool isolate : {false, true}) {
    options.isolate = isolate;
    std::vector<float> kept;
    add("stale", 10, returns_its_first_result(kept));
    add("good", 50);
    const TuneResult result = tune("stale");
    EXPECT_EQ(result.chosen, "good");
    EXPECT_EQ(row(result, "stale").outcome, TuneOutcome::quarantined);
    EXPECT_TRUE(row(result, "stale").reason.starts_with("it gave wrong numbers")) << row(result, "stale").reason;
    EXPECT_EQ(row(result, "good").error, 0);
    const TuneRecord record = result.record(1);
    ASSERT_EQ(record.quarantine.size(), 1u);
    EXPECT_EQ(record.quarantine[0].kernel, "stale");
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "stale");
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "good");
  }
}

TEST_F(TunerTest, FindsOutWhoIsWrongEveryOtherTime) {
  for (const int wrong : {0, 1}) {
    int calls = 0;
    add("moody", 10, [&](const RunArguments& arguments) {
      // Right in its first call; then it depends on how many calls the race made, so both ways are tried.
      return ++calls > 1 && calls % 2 == wrong ? off_by_a_little(arguments) : relu(arguments);
    });
    add("good", 50);
    const TuneResult result = tune("moody");
    EXPECT_EQ(result.chosen, "good");
    EXPECT_EQ(row(result, "moody").outcome, TuneOutcome::quarantined);
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "moody");
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "good");
  }
}

/// In its first `honest` calls it writes what it then reads.
std::function<Status(const RunArguments&)> adds_its_workspace(int& calls, int honest) {
  return [&calls, honest](const RunArguments& arguments) {
    const Status status = relu(arguments);
    auto* const found = static_cast<float*>(arguments.workspace);
    if (++calls <= honest) *found = 0;
    arguments.outputs[0]->as<float>()[7] += *found;
    return status;
  };
}

// Memory that was never used is mostly zero, and what a kernel left there is right for ever in a race.
TEST_F(TunerTest, FindsOutWhoReadsWorkspaceThatItHasNotWritten) {
  for (const bool isolate : {false, true}) {
    for (const int honest : {0, 1}) {
      std::memset(devices.workspace(Device{}).acquire(256, {}).data(), 0, 256);  // the tuner gets this block next
      options.isolate = isolate;
      int calls = 0;
      add(FunctionKernel{.op = OpId::relu, .name = "lazy", .workspace_bytes = 256}, 10,
          adds_its_workspace(calls, honest));
      add("good", 50);
      const TuneResult result = tune("lazy");
      EXPECT_EQ(result.chosen, "good") << isolate << honest;
      EXPECT_EQ(row(result, "lazy").outcome, TuneOutcome::quarantined) << isolate << honest;
      EXPECT_TRUE(row(result, "lazy").reason.starts_with("it gave wrong numbers")) << row(result, "lazy").reason;
      registry.unregister_kernel(OpId::relu, DeviceType::cpu, "lazy");
      registry.unregister_kernel(OpId::relu, DeviceType::cpu, "good");
    }
  }
}

// A race that is run again may have no time: its winner is checked all the same.
TEST_F(TunerTest, ChecksTheNextWinnerWhereTheFirstSpentTheBudget) {
  std::vector<float> kept[2];
  for (const int i : {0, 1}) {
    add("stale" + std::to_string(i), 30'000 + 1000 * i, returns_its_first_result(kept[i]));
  }
  reference_us = 60'000;
  options.problem_budget_s = 0.3;
  const TuneResult result = tune("stale1");
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(result.record(1).quarantine.size(), 2u);
}

TEST_F(TunerTest, PassesARightKernelThatKeepsStateWithEverySeed) {
  std::vector<float> scratch;
  add("careful", 10, [&](const RunArguments& arguments) {
    scratch.assign(arguments.inputs[0]->as<float>(), arguments.inputs[0]->as<float>() + 64);
    return relu(arguments);
  });
  for (options.seed = 0; options.seed < 20; ++options.seed) {
    const TuneResult result = tune("reference");
    EXPECT_EQ(result.chosen, "careful") << options.seed;
    EXPECT_TRUE(result.record(1).quarantine.empty()) << options.seed;
  }
}

// A seed gives the same numbers each time: those of the first check, and others for the second.
TEST_F(TunerTest, ChecksTheWinnerOnOtherInputsThatTheSeedGives) {
  std::vector<std::vector<float>> seen;
  add("a", 10, [&](const RunArguments& arguments) {
    const float* const in = arguments.inputs[0]->as<float>();
    std::vector<float> now(in, in + 64);
    if (seen.empty() || seen.back() != now) seen.push_back(std::move(now));
    return relu(arguments);
  });
  tune("a");
  const auto first = std::exchange(seen, {});
  ASSERT_EQ(first.size(), 2u);
  tune("a");
  EXPECT_EQ(seen, first);
}

}  // namespace
}  // namespace xpuruntime
