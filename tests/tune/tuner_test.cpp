#include "xpuruntime/tune/tuner.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/expect_error.h"
#include "tune/tuner_fixture.h"

namespace xpuruntime {
namespace {

using testing::off_by_a_little;
using testing::problem;
using testing::relu;
using testing::TunerTest;

TEST_F(TunerTest, ChoosesTheFastest) {
  add("a", 100);
  add("b", 60);
  const TuneResult result = tune("a");
  EXPECT_EQ(result.chosen, "b");
  EXPECT_EQ(result.because, "it takes 40.0 % less time than a, which would be chosen without measuring");
  EXPECT_FALSE(result.cut_short);
  EXPECT_EQ(row(result, "b").outcome, TuneOutcome::won);
  EXPECT_EQ(row(result, "a").outcome, TuneOutcome::lost);
  EXPECT_NEAR(*row(result, "b").time_us, 60, 0.5);
  EXPECT_NEAR(*row(result, "a").time_us, 100, 0.5);
  EXPECT_GT(row(result, "b").runs, 0);
  EXPECT_EQ(row(result, "b").error, 0);
}

TEST_F(TunerTest, ListsCandidatesInTableOrder) {
  add("a", 100);
  add("b", 60);
  const TuneResult result = tune("a");
  ASSERT_EQ(result.candidates.size(), 3u);
  EXPECT_EQ(result.candidates[0].kernel, "b");  // what was added later comes first
  EXPECT_EQ(result.candidates[2].kernel, "reference");
}

TEST_F(TunerTest, KeepsTheIncumbentForLittle) {
  add("a", 100);
  add("b", 99);
  const TuneResult result = tune("a");
  EXPECT_EQ(result.chosen, "a");
  EXPECT_EQ(row(result, "a").outcome, TuneOutcome::won);
}

TEST_F(TunerTest, TakesTheFastestWhereTheIncumbentCannotRun) {
  add("a", 100);
  FunctionKernel picky;
  picky.op = OpId::relu;
  picky.name = "picky";
  picky.supports = [](const Problem&, const DeviceProfile&) { return Verdict::no("it is Tuesday"); };
  add(picky, 10);
  const TuneResult result = tune("picky");
  EXPECT_EQ(result.chosen, "a");
  EXPECT_NE(result.because.find("picky cannot: it is Tuesday"), std::string::npos) << result.because;
  EXPECT_EQ(row(result, "picky").outcome, TuneOutcome::refused);
  EXPECT_FALSE(row(result, "picky").time_us);
}

TEST_F(TunerTest, ObeysTheLimitsOfTheProblem) {
  FunctionKernel large;
  large.op = OpId::relu;
  large.name = "large";
  large.workspace_bytes = 5000;
  add(large, 10);
  FunctionKernel dice;
  dice.op = OpId::relu;
  dice.name = "dice";
  dice.deterministic = false;
  add(dice, 10);
  Problem limited = problem;
  limited.limits.workspace_bytes = 4999;
  limited.limits.deterministic = true;
  const TuneResult result = tune("reference", limited);
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(row(result, "large").reason, "it needs 5000 bytes of workspace, the limit is 4999");
  EXPECT_EQ(row(result, "dice").outcome, TuneOutcome::refused);
  limited.limits.workspace_bytes = 5000;
  const TuneResult allowed = tune("reference", limited);
  EXPECT_EQ(allowed.chosen, "large");
  EXPECT_EQ(allowed.record(1).measurements.front().workspace_bytes, 5000u);
}

TEST_F(TunerTest, DoesNotTryWhatIsInQuarantine) {
  FunctionKernel a{.op = OpId::relu, .name = "a", .version = "1"};
  add(a, 10, [](const RunArguments&) -> Status { throw std::runtime_error("it ran"); });
  const std::vector<QuarantineEntry> known = {{to_string(problem), "a", "it crashed last week", 5, "1"},
                                              {"relu(f32[65]) @cpu:0", "reference", "of another problem", 5}};
  const TuneResult result = tune("reference", problem, known);
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(row(result, "a").outcome, TuneOutcome::quarantined);
  EXPECT_EQ(row(result, "a").reason, "it crashed last week");
  EXPECT_TRUE(result.record(9).quarantine.empty());  // it is there already, with its own date
}

TEST_F(TunerTest, TriesOtherCodeUnderTheNameOfWhatIsInQuarantine) {
  FunctionKernel a{.op = OpId::relu, .name = "a", .version = "2"};
  add(a, 10);
  const TuneResult result = tune("reference", problem, {{to_string(problem), "a", "it crashed last week", 5, "1"}});
  EXPECT_EQ(result.chosen, "a");
  EXPECT_EQ(result.record(1).choices.at(0).kernel_version, "2");
  EXPECT_EQ(result.record(1).measurements.at(0).kernel_version, "2");
}

struct BadWork {
  const char* name;
  std::function<Status(const RunArguments&)> work;
  const char* reason;
};
class TunerAgainst : public TunerTest, public ::testing::WithParamInterface<BadWork> {};

const BadWork bad_works[] = {
    {"WrongNumbers", off_by_a_little, "it gave wrong numbers: the error is"},
    {"AnOutputLeftOut", [](const RunArguments&) { return Status(); }, "it gave wrong numbers"},
    {"AFailedStatus", [](const RunArguments&) { return Status(ErrorCode::device_error, "no luck"); },
     "it failed: no luck"},
    {"AThrow", [](const RunArguments&) -> Status { throw std::runtime_error("oh"); }, "threw: oh"},
    {"AStrangeThrow", [](const RunArguments&) -> Status { throw 7; }, "not a std::exception"}};

TEST_P(TunerAgainst, NeverLetsItWin) {
  for (const bool isolate : {false, true}) {
    options.isolate = isolate;
    add("bad", 1, GetParam().work);
    const TuneResult result = tune("bad");
    EXPECT_EQ(result.chosen, "reference");
    EXPECT_EQ(row(result, "bad").outcome, TuneOutcome::quarantined);
    EXPECT_NE(row(result, "bad").reason.find(GetParam().reason), std::string::npos) << row(result, "bad").reason;
    const TuneRecord record = result.record(77);
    ASSERT_EQ(record.quarantine.size(), 1u);
    EXPECT_EQ(record.quarantine[0].kernel, "bad");
    EXPECT_EQ(record.quarantine[0].found_at, 77);
    EXPECT_EQ(record.choices.at(0).kernel, "reference");
    registry.unregister_kernel(OpId::relu, DeviceType::cpu, "bad");
  }
}
INSTANTIATE_TEST_SUITE_P(Kernels, TunerAgainst, ::testing::ValuesIn(bad_works),
                         [](const auto& info) { return std::string(info.param.name); });

/// Throws where it is told to.
class ThrowingKernel final : public Kernel {
 public:
  explicit ThrowingKernel(bool in_supports) : in_supports_(in_supports) {}
  OpId op() const override { return OpId::relu; }
  std::string_view name() const override { return "throwing"; }
  DeviceType device_type() const override { return DeviceType::cpu; }
  Verdict accepts(const Problem&, const DeviceProfile&) const override {
    if (in_supports_) throw std::runtime_error("what a question");
    return Verdict::yes();
  }
  std::unique_ptr<const Plan> make_plan(const Problem&, const PrepareContext&, std::string_view) const override {
    throw std::runtime_error("no plan");
  }

 private:
  bool in_supports_;
};

// That all our own are wrong is less likely than that the check is.
TEST_F(TunerTest, DoubtsTheCheckWhereOnlyTheReferencePasses) {
  registry.add_backend(std::make_shared<testing::WrongCpu>(), KernelOrigin::built_in);
  const TuneResult result = tune("fast");
  EXPECT_EQ(result.chosen, "reference");  // for now, as it is the safe one
  EXPECT_EQ(row(result, "fast").outcome, TuneOutcome::quarantined);
  EXPECT_TRUE(result.not_stored.starts_with("no kernel but the reference passed the check (wrong numbers: fast)"))
      << result.not_stored;
  const std::vector<QuarantineEntry> known = {{to_string(problem), "fast", row(result, "fast").reason, 1}};
  EXPECT_NE(tune("fast", problem, known).not_stored, "") << "nor where it is known from before";
}

TEST_F(TunerTest, DoubtsNothingWhereAnotherPasses) {
  registry.add_backend(std::make_shared<testing::WrongCpu>(), KernelOrigin::built_in);
  add("good", 1000);
  const TuneResult result = tune("fast");
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(result.not_stored, "");
  EXPECT_EQ(result.record(1).quarantine.size(), 1u);
}

TEST_F(TunerTest, RefusesAKernelThatThrowsWhenItIsAsked) {
  registry.register_kernel(std::make_shared<ThrowingKernel>(true));
  const TuneResult result = tune("reference");
  EXPECT_EQ(result.chosen, "reference");
  EXPECT_EQ(row(result, "throwing").outcome, TuneOutcome::refused);
  EXPECT_EQ(row(result, "throwing").reason, "it threw in supports: what a question");
}

TEST_F(TunerTest, QuarantinesAKernelThatThrowsWhenItIsPrepared) {
  registry.register_kernel(std::make_shared<ThrowingKernel>(false));
  for (const bool isolate : {false, true}) {
    options.isolate = isolate;
    const TuneResult result = tune("reference");
    EXPECT_EQ(result.chosen, "reference");
    EXPECT_EQ(row(result, "throwing").outcome, TuneOutcome::quarantined);
    EXPECT_EQ(row(result, "throwing").reason, "it threw in prepare: no plan");
  }
}

// One run with little memory must not store a bad word for good.
TEST_F(TunerTest, DoesNotBrandAKernelForALackOfMemory) {
  add("hungry", 1, [](const RunArguments&) { return Status(ErrorCode::out_of_memory, "nothing left"); });
  for (const bool isolate : {false, true}) {
    options.isolate = isolate;
    const TuneResult result = tune("hungry");
    EXPECT_EQ(row(result, "hungry").outcome, TuneOutcome::refused);
    EXPECT_TRUE(result.record(1).quarantine.empty());
  }
}

TEST_F(TunerTest, FindsOutWhoIsWrongOnlyLater) {
  int calls = 0;
  add("late", 10,
      [&](const RunArguments& arguments) { return ++calls < 30 ? relu(arguments) : off_by_a_little(arguments); });
  add("good", 50);
  const TuneResult result = tune("reference");
  EXPECT_EQ(result.chosen, "good");
  EXPECT_EQ(row(result, "late").outcome, TuneOutcome::quarantined);
}

TEST_F(TunerTest, GoesOnWithoutAKernelThatFailsInTheRace) {
  int calls = 0;
  add("late", 10, [&](const RunArguments& arguments) {
    return ++calls < 20 ? relu(arguments) : Status(ErrorCode::device_error, "worn out");
  });
  add("good", 50);
  const TuneResult result = tune("late");
  EXPECT_EQ(result.chosen, "good");
  EXPECT_EQ(row(result, "late").reason, "it failed: worn out");
  EXPECT_NE(result.because.find("late cannot: it failed: worn out"), std::string::npos) << result.because;
}

TEST_F(TunerTest, DoesNotGiveUpOnAKernelThatCompilesInItsFirstCall) {
  int calls = 0;
  add("compiled", 50, [&](const RunArguments& arguments) {
    if (++calls == 1) now_us += 80000;
    return relu(arguments);
  });
  add("a", 100);
  EXPECT_EQ(tune("a").chosen, "compiled");
}

TEST_F(TunerTest, SaysThatNothingCanRun) {
  const TuneResult none = tune("", parse_problem("gelu(f32[8])"));
  EXPECT_EQ(none.chosen, "");
  EXPECT_EQ(none.because, "no kernel for gelu on cpu:0 can run this");
  EXPECT_EQ(none.record(1), TuneRecord());
}

// The race goes by rounds, in which another machine's load may tell: the times beside it are what people divide.
TEST_F(TunerTest, GivesTheGainAsTheRatioOfTheTwoTimes) {
  int calls = 0;
  add("a", 0, [&](const RunArguments& arguments) {
    now_us += ++calls % 3 == 0 ? 900 : 400;
    return relu(arguments);
  });
  add("b", 100);
  const TuneResult result = tune("a");
  ASSERT_EQ(result.chosen, "b");
  EXPECT_DOUBLE_EQ(result.gain, *row(result, "a").time_us / *row(result, "b").time_us);
  const TuneResult same = tune("b");
  EXPECT_EQ(same.gain, 1);
}

TEST_F(TunerTest, TellsHowFarItIs) {
  add("a", 100);
  double last = 0;
  int calls = 0;
  options.progress = [&](const TuneProgress& progress) {
    EXPECT_EQ(progress.problem, to_string(problem));
    EXPECT_GE(progress.spent_s, last);
    EXPECT_LE(progress.remaining_s, options.problem_budget_s);
    last = progress.spent_s;
    ++calls;
    return true;
  };
  EXPECT_EQ(tune("a").chosen, "a");
  EXPECT_GT(calls, 5);
  EXPECT_GT(last, 0);
}

TEST_F(TunerTest, CanBeCancelledAtAnyMoment) {
  add("a", 100);
  add("b", 60);
  add("bad", 1, off_by_a_little);
  int moments = 0;
  options.progress = [&](const TuneProgress&) { return ++moments > 0; };
  tune("a");
  for (int stop_at = 1; stop_at <= moments; ++stop_at) {
    int calls = 0;
    options.progress = [&](const TuneProgress&) { return ++calls < stop_at; };
    const TuneResult result = tune("a");
    ASSERT_TRUE(result.cancelled) << stop_at;
    ASSERT_EQ(calls, stop_at) << "it went on after it was told to stop";
    ASSERT_EQ(result.chosen, "");
    ASSERT_EQ(result.candidates.size(), 4u);
    ASSERT_TRUE(result.record(1).choices.empty());
    ASSERT_TRUE(result.record(1).measurements.empty());
  }
}

TEST_F(TunerTest, LetsOutWhatTheProgressThrows) {
  add("a", 100);
  for (int stop_at = 1; stop_at < 12; ++stop_at) {
    int calls = 0;
    options.progress = [&](const TuneProgress&) -> bool {
      if (++calls == stop_at) throw std::runtime_error("enough");
      return true;
    };
    EXPECT_THROW(tune("a"), std::runtime_error) << stop_at;
  }
  options.progress = {};
  EXPECT_EQ(tune("a").chosen, "a");
}

TEST_F(TunerTest, SurvivesAClockThatJumps) {
  add("a", 100);
  add("b", 60);
  std::mt19937_64 random(3);
  double offset = 0;
  const auto clock = [&] {
    const auto dice = random() % 20;
    if (dice == 0) offset -= 1e7;   // ten seconds back
    if (dice == 1) offset += 1e10;  // hours ahead
    return now_us + offset;
  };
  const TuneResult result = Tuner(registry, clock).tune(problem, "a", options);
  EXPECT_EQ(result.chosen, "b");
  EXPECT_NEAR(*row(result, "b").time_us, 60, 0.5);
  EXPECT_GT(result.discarded, 0);
}

TEST_F(TunerTest, KeepsTheIncumbentByAClockThatIsAlwaysWrong) {
  add("a", 100);
  add("b", 60);
  double now = 0;
  const TuneResult back = Tuner(registry, [&] { return now -= 5; }).tune(problem, "a", options);
  EXPECT_EQ(back.chosen, "a");
  EXPECT_TRUE(back.cut_short);
  EXPECT_GT(back.discarded, 10);
  const TuneResult none = Tuner(registry, [] { return std::nan(""); }).tune(problem, "a", options);
  EXPECT_EQ(none.chosen, "a");
}

TEST_F(TunerTest, EndsByAClockThatStandsStill) {
  int calls = 0;
  for (const char* name : {"a", "b"}) {
    add(name, 0, [&](const RunArguments& arguments) {
      if (++calls > 100'000) ADD_FAILURE(), std::abort();  // it would go on for hours
      return relu(arguments);
    });
  }
  const TuneResult result = Tuner(registry, [] { return 5e6; }).tune(problem, "a", options);
  EXPECT_EQ(result.chosen, "a");
  EXPECT_TRUE(result.cut_short);
  EXPECT_NE(result.because.find("the clock stood still"), std::string::npos) << result.because;
  EXPECT_EQ(result.record(1).measurements.size(), 0u);  // nothing was timed, and nothing is kept
  EXPECT_EQ(result.record(1).choices.size(), 0u);
  EXPECT_FALSE(result.measured());
}

TEST_F(TunerTest, EndsByAClockThatStopsDuringTheRace) {
  add("a", 100);
  add("b", 60);
  int readings = 0;
  double stopped_at = 0;
  const auto clock = [&] {
    if (++readings == 40) stopped_at = now_us;
    return readings < 40 ? now_us : stopped_at;
  };
  const TuneResult result = Tuner(registry, clock).tune(problem, "a", options);
  EXPECT_FALSE(result.chosen.empty());
  EXPECT_TRUE(result.cut_short);
}

/// What takes the processor's time is not called often to find out that the clock does not move.
TEST_F(TunerTest, NoticesEarlyThatTheClockStandsStillWhereCallsAreLong) {
  int calls = 0;
  add("long", 0, [&](const RunArguments& arguments) {
    ++calls;
    timespec end = {}, now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    end.tv_sec += end.tv_nsec >= 950'000'000;
    end.tv_nsec = (end.tv_nsec + 50'000'000) % 1'000'000'000;
    do {
      clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    } while (now.tv_sec < end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec < end.tv_nsec));
    return relu(arguments);
  });
  const TuneResult result = Tuner(registry, [] { return 5e6; }).tune(problem, "long", options);
  EXPECT_EQ(result.chosen, "long");
  EXPECT_LE(calls, 20);
}

TEST_F(TunerTest, RefusesOptionsThatCannotBe) {
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) {
    TuneOptions wrong;
    wrong.problem_budget_s = bad;
    expect_invalid("problem_budget_s", [&] { Tuner(registry).tune(problem, "", wrong); });
    wrong = {};
    wrong.total_budget_s = bad;
    expect_invalid("total_budget_s", [&] { Tuner(registry).tune_all({}, wrong, {}); });
    wrong = {};
    wrong.probe_timeout_s = bad;
    expect_invalid("probe_timeout_s", [&] { Tuner(registry).tune(problem, "", wrong); });
  }
  TuneOptions wrong;
  wrong.min_gain = 1;
  expect_invalid("min_gain", [&] { Tuner(registry).tune(problem, "", wrong); });
}

TEST_F(TunerTest, TunesWithTheSystemsClock) {
  add("a", 0);
  const TuneResult result = Tuner(registry).tune(problem, "a", options);
  EXPECT_FALSE(result.chosen.empty());
  EXPECT_GT(*row(result, result.chosen).time_us, 0);
}

class TuneAll : public TunerTest {
 protected:
  bool tune_all(const std::vector<std::string>& problems) {
    std::vector<TuneTask> tasks;
    for (const std::string& text : problems) tasks.push_back({parse_problem(text), "reference", {}});
    return Tuner(registry, [this] { return now_us; }).tune_all(tasks, options, [this](const TuneResult& result) {
      results.push_back(result);
    });
  }
  std::vector<TuneResult> results;
};

TEST_F(TuneAll, GoesThroughAllProblems) {
  add("a", 100);
  std::vector<std::size_t> indices;
  options.progress = [&](const TuneProgress& progress) {
    EXPECT_EQ(progress.problem_count, 2u);
    indices.push_back(progress.problem_index);
    return true;
  };
  EXPECT_TRUE(tune_all({"relu(f32[64])", "relu(f32[65])"}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[1].chosen, "a");
  EXPECT_EQ(indices.front(), 0u);
  EXPECT_EQ(indices.back(), 1u);
}

TEST_F(TuneAll, GoesOnAfterAProblemThatFails) {
  add("a", 100);
  EXPECT_TRUE(tune_all({"relu(f32[1000000000,1000])", "relu(f32[65])"}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].chosen, "");
  EXPECT_NE(results[0].because.find("use smaller shapes"), std::string::npos) << results[0].because;
  EXPECT_EQ(results[1].chosen, "a");
}

TEST_F(TuneAll, ObeysTheTotalBudget) {
  add("a", 20000);
  add("b", 20100);
  options.problem_budget_s = 1;
  options.total_budget_s = 0.6;
  const double before = now_us;
  tune_all({"relu(f32[64])", "relu(f32[65])", "relu(f32[66])"});
  EXPECT_LE(now_us - before, 0.6e6 * 1.3);
  EXPECT_GE(results.size(), 2u);
}

TEST_F(TuneAll, DoesNotBeginWhereMakingTheTensorsTakesLongerThanTheBudget) {
  add("a", 100);
  options.total_budget_s = 0.5;
  EXPECT_TRUE(tune_all({"relu(f32[200000000])", "relu(f32[65])"}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].chosen, "");
  EXPECT_EQ(results[0].cut_by, "total_budget_s");
  EXPECT_NE(results[0].because.find("making its tensors would take longer than is left"), std::string::npos)
      << results[0].because;
  EXPECT_EQ(results[1].chosen, "a");
}

TEST_F(TuneAll, SaysThatTheBudgetDidNotReach) {
  add("a", 5e6);
  options.total_budget_s = 1;
  EXPECT_FALSE(tune_all({"relu(f32[64])", "relu(f32[65])", "relu(f32[66])"}));
  EXPECT_EQ(results.size(), 2u);
}

TEST_F(TuneAll, StopsWhenItIsCancelledAndKeepsWhatWasFinished) {
  add("a", 100);
  options.progress = [](const TuneProgress& progress) { return progress.problem_index == 0; };
  EXPECT_FALSE(tune_all({"relu(f32[64])", "relu(f32[65])", "relu(f32[66])"}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].chosen, "a");
  EXPECT_TRUE(results[1].cancelled);
}

TEST_F(TuneAll, LetsOutWhatTheCallerThrows) {
  add("a", 100);
  options.progress = [](const TuneProgress&) -> bool { fail(ErrorCode::timeout, "caller", "enough"); };
  expect_error(ErrorCode::timeout, "enough", [&] { tune_all({"relu(f32[64])"}); });
  EXPECT_TRUE(results.empty());
}

TEST(TuneResult, RecordsWhatWasMeasured) {
  TuneResult result;
  result.problem = problem;
  result.incumbent = "a";
  result.chosen = "b";
  result.because = "it takes less";
  result.candidates = {{"a", "t=1", TuneOutcome::lost, "", 10.0, 0.5, 100, 64, 1e-7, 1e-6},
                       {"b", "t=2", TuneOutcome::won, "", 8.0, {}, 50, {}, {}, {}},
                       {"c", "", TuneOutcome::refused, "no"}};
  const std::string text = to_string(problem);
  const TuneRecord record = result.record(1234);
  const std::vector<Measurement> measurements = {{text, "a", "t=1", 10, 0.5, 100, 64, 1e-7, 1234},
                                                 {text, "b", "t=2", 8, 8, 50, 0, 0, 1234}};
  EXPECT_EQ(record.measurements, measurements);
  EXPECT_EQ(record.choices, (std::vector<TunedChoice>{{text, "b", "t=2", "a", "it takes less", false, 1234}}));
  EXPECT_TRUE(record.quarantine.empty());
}

}  // namespace
}  // namespace xpuruntime
