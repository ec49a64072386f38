#include "xpuruntime/tune/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <thread>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
const Problem problem = parse_problem("relu(f32[4])");
const Problem other = parse_problem("relu(f32[5])");

RunningStats stats_of(std::initializer_list<double> times) {
  RunningStats stats;
  for (const double time : times) stats.add(time);
  return stats;
}

TEST(RunningStats, StartsEmpty) {
  const RunningStats stats;
  EXPECT_EQ(stats.count(), 0);
  EXPECT_EQ(stats.mean_us(), 0);
}

TEST(RunningStats, KeepsCountMeanAndRange) {
  const RunningStats stats = stats_of({3, 1, 5, 7});
  EXPECT_EQ(stats.count(), 4);
  EXPECT_DOUBLE_EQ(stats.mean_us(), 4);
  EXPECT_EQ(stats.min_us(), 1);
  EXPECT_EQ(stats.max_us(), 7);
}

/// The mean of ten million values, with a sum that loses nothing: Kahan's, in long double.
void expect_exact_mean(const std::function<double(int)>& value) {
  constexpr int count = 10'000'000;
  RunningStats stats;
  long double sum = 0;
  long double lost = 0;
  for (int i = 0; i < count; ++i) {
    const double time = value(i);
    stats.add(time);
    const long double corrected = time - lost;
    const long double next = sum + corrected;
    lost = (next - sum) - corrected;
    sum = next;
  }
  const auto mean = static_cast<double>(sum / count);
  EXPECT_EQ(stats.count(), count);
  EXPECT_NEAR(stats.mean_us() / mean, 1, 1e-12);
}

TEST(RunningStats, StaysExactOverTenMillionEqualTimes) {
  expect_exact_mean([](int) { return 0.1; });
}
TEST(RunningStats, StaysExactOverTenMillionTimesOfAllSizes) {
  expect_exact_mean([](int i) { return 1e-3 * static_cast<double>((i * 7919LL) % 1000003); });
}
TEST(RunningStats, StaysExactWhenTheFirstTimeIsHuge) {
  expect_exact_mean([](int i) { return i == 0 ? 1e9 : 0.3; });
}
TEST(RunningStats, StaysExactWhenLargeAndSmallTimesTakeTurns) {
  expect_exact_mean([](int i) { return i % 2 ? 1.0 / 3 : 12345.678; });
}
TEST(RunningStats, StaysExactWhenTimesOnlyGrow) {
  expect_exact_mean([](int i) { return 0.1 + 1e-7 * i; });
}

/// Whole multiples of 1/1024 us add up exactly in integers.
TEST(RunningStats, GivesTheExactMeanOfAHundredMillionTimesToTheLastBit) {
  constexpr std::int64_t count = 100'000'000;
  RunningStats stats;
  std::int64_t sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    // One outlier of an hour first, then times from nothing to a millisecond, and a slow drift.
    const std::int64_t time = i == 0 ? 3'686'400'000'000 : (i * 7919) % 1'000'003 + i / 1000;
    sum += time;
    stats.add(static_cast<double>(time) / 1024);
  }
  const auto mean = static_cast<double>(static_cast<long double>(sum) / 1024 / count);
  EXPECT_EQ(stats.count(), count);
  EXPECT_NEAR(stats.mean_us(), mean, std::nextafter(mean, infinity) - mean);
  EXPECT_EQ(stats.max_us(), 3.6e9);
}

TEST(RunningStats, MergesAsIfAllHadBeenAddedToOne) {
  RunningStats stats = stats_of({1, 2, 3});
  stats.merge(stats_of({10, 20}));
  EXPECT_EQ(stats.count(), 5);
  EXPECT_DOUBLE_EQ(stats.mean_us(), 36.0 / 5);
  EXPECT_EQ(stats.min_us(), 1);
  EXPECT_EQ(stats.max_us(), 20);
}

TEST(RunningStats, MergesWithNothing) {
  RunningStats stats = stats_of({2, 4});
  stats.merge({});
  EXPECT_EQ(stats.count(), 2);
  EXPECT_EQ(stats.min_us(), 2);
  RunningStats empty;
  empty.merge(stats);
  EXPECT_DOUBLE_EQ(empty.mean_us(), 3);
  EXPECT_EQ(empty.min_us(), 2);
}

TEST(RunningStats, IsMadeFromASum) {
  const RunningStats stats = RunningStats::from_sum(4, 10, 1, 5);
  EXPECT_EQ(stats.count(), 4);
  EXPECT_DOUBLE_EQ(stats.mean_us(), 2.5);
  EXPECT_EQ(stats.max_us(), 5);
  EXPECT_EQ(RunningStats::from_sum(0, 10, 1, 5).count(), 0);
}

TEST(RunningStats, RefusesTimesThatCannotBeAndChangesNothing) {
  RunningStats stats = stats_of({2, 4});
  for (const double time : {-1.0, -1e-300, nan, infinity, -infinity}) {
    expect_invalid("finite and not negative", [&] { stats.add(time); });
  }
  EXPECT_EQ(stats.count(), 2);
  EXPECT_DOUBLE_EQ(stats.mean_us(), 3);
  EXPECT_EQ(stats.max_us(), 4);
}

TEST(RunningStats, TakesATimeOfZero) { EXPECT_EQ(stats_of({0}).count(), 1); }

TEST(Statistics, KeepsTimesByProblemAndKernel) {
  Statistics statistics;
  statistics.record(problem, "a", 1);
  statistics.record(problem, "a", 3);
  statistics.record(problem, "b", 10);
  EXPECT_DOUBLE_EQ(statistics.find(problem, "a")->mean_us(), 2);
  EXPECT_DOUBLE_EQ(statistics.find(problem, "b")->mean_us(), 10);
  EXPECT_FALSE(statistics.find(problem, "c"));
  EXPECT_FALSE(statistics.find(other, "a"));
}

TEST(Statistics, FilesATimeUnderTheProblemWithoutItsLimits) {
  Problem limited = problem;
  limited.limits.workspace_bytes = 100;
  limited.limits.deterministic = true;
  Statistics statistics;
  statistics.record(limited, "a", 5);
  EXPECT_DOUBLE_EQ(statistics.find(problem, "a")->mean_us(), 5);
  EXPECT_EQ(statistics.freeze()->time_us(limited, "a"), 5);
  EXPECT_EQ(statistics.freeze()->problem_count(), 1u);
}

TEST(Statistics, ChangesNothingOnABadTime) {
  Statistics statistics;
  statistics.record(problem, "a", 5);
  const auto before = statistics.freeze();
  for (const double time : {-1.0, nan, infinity}) {
    expect_invalid("finite", [&] { statistics.record(problem, "b", time); });
    expect_invalid("finite", [&] { statistics.record(other, "a", time); });
  }
  EXPECT_FALSE(statistics.find(problem, "b"));
  EXPECT_EQ(statistics.freeze(), before);
  // A time that was refused must not read as 0 us, the fastest of all, once something else is added.
  statistics.record(problem, "c", 7);
  EXPECT_FALSE(statistics.freeze()->time_us(problem, "b"));
  EXPECT_EQ(statistics.freeze()->problem_count(), 1u);
}

TEST(Statistics, MergesTimesSummedUpElsewhere) {
  Statistics statistics;
  statistics.record(problem, "a", 1);
  statistics.merge(problem, "a", stats_of({3, 5}));
  statistics.merge(problem, "b", {});
  EXPECT_DOUBLE_EQ(statistics.find(problem, "a")->mean_us(), 3);
  EXPECT_FALSE(statistics.find(problem, "b"));
}

TEST(Statistics, SumUpThoseProblemsThatAreAskedFor) {
  Statistics statistics;
  statistics.record(problem, "a", 1);
  statistics.record(problem, "b", 3);
  statistics.record(other, "a", 8);
  const RunningStats of_one = statistics.total([](const Problem& each) { return each == problem; });
  EXPECT_EQ(of_one.count(), 2);
  EXPECT_DOUBLE_EQ(of_one.mean_us(), 2);
  const RunningStats of_all = statistics.total([](const Problem&) { return true; });
  EXPECT_EQ(of_all.count(), 3);
  EXPECT_DOUBLE_EQ(of_all.mean_us(), 4);
  EXPECT_EQ(of_all.max_us(), 8);
  EXPECT_EQ(statistics.total([](const Problem&) { return false; }).count(), 0);
}

TEST(Statistics, FreezesWhatNeverChangesAgain) {
  Statistics statistics;
  statistics.record(problem, "a", 1);
  const auto frozen = statistics.freeze();
  statistics.record(problem, "a", 99);
  statistics.clear();
  EXPECT_EQ(frozen->time_us(problem, "a"), 1);
  EXPECT_TRUE(statistics.freeze()->empty());
}

TEST(Statistics, GivesTheSameSnapshotUntilSomethingIsAdded) {
  Statistics statistics;
  statistics.record(problem, "a", 1);
  const auto first = statistics.freeze();
  EXPECT_EQ(statistics.freeze(), first);
  statistics.merge(problem, "a", {});
  EXPECT_EQ(statistics.freeze(), first);
  statistics.record(problem, "a", 1);
  EXPECT_NE(statistics.freeze(), first);
}

TEST(Statistics, GivesTheSameSnapshotWhileNothingInItIsNews) {
  Statistics statistics;
  for (int i = 0; i < 4; ++i) {
    statistics.record(problem, "a", 10);
    statistics.record(problem, "b", 20);
  }
  const auto first = statistics.freeze();
  statistics.record(problem, "a", 11);
  statistics.record(problem, "b", 19);
  EXPECT_EQ(statistics.freeze(), first);
  EXPECT_EQ(statistics.find(problem, "a")->count(), 5);
  statistics.record(problem, "b", 0);  // still the slower one
  EXPECT_EQ(statistics.freeze(), first);
  statistics.record(problem, "a", 100);
  const auto second = statistics.freeze();
  EXPECT_NE(second, first);
  EXPECT_GT(second->time_us(problem, "a"), second->time_us(problem, "b"));
  statistics.record(other, "a", 1);
  EXPECT_NE(statistics.freeze(), second);
}

Problem relu_of(std::int64_t n) {
  return make_problem(OpId::relu, {make_spec(DataType::float32, {n})}, Attributes(OpId::relu));
}

TEST(Statistics, AreBoundedAndForgetFirstWhatNothingWasAddedToForLongest) {
  Statistics statistics(64);
  for (int n = 1; n <= 1000; ++n) {
    statistics.record(relu_of(n), "a", n);
    statistics.record(relu_of(7), "a", 7);
    ASSERT_LE(statistics.freeze()->problem_count(), 64u);
  }
  EXPECT_TRUE(statistics.find(relu_of(7), "a"));
  for (int n = 1000; n > 1000 - 55; --n) EXPECT_TRUE(statistics.find(relu_of(n), "a")) << n;
  EXPECT_FALSE(statistics.find(relu_of(900), "a"));
}

TEST(Statistics, CountEveryKernelOfAProblemTowardsTheirBound) {
  Statistics statistics(64);
  statistics.record(other, "a", 1);
  for (int i = 0; i < 64; ++i) statistics.record(problem, "kernel" + std::to_string(i), 1);
  EXPECT_FALSE(statistics.find(other, "a"));
  EXPECT_FALSE(statistics.find(problem, "kernel0"));
  statistics.record(other, "a", 1);
  EXPECT_TRUE(statistics.find(other, "a"));
}

TEST(Measurements, KnowNothingOfWhatWasNotMeasured) {
  EXPECT_TRUE(Measurements().empty());
  EXPECT_FALSE(Measurements().time_us(problem, "a"));
}

TEST(Statistics, LoseNothingWhenManyThreadsRecordAndFreeze) {
  constexpr int threads = 4;
  constexpr int rounds = 5000;
  Statistics statistics;
  std::vector<std::thread> workers;
  for (int worker = 0; worker < threads; ++worker) {
    workers.emplace_back([&, worker] {
      for (int i = 0; i < rounds; ++i) {
        statistics.record(i % 2 ? problem : other, "kernel", worker + 1);
        if (i % 500 == 0) statistics.freeze();
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  EXPECT_EQ(statistics.find(problem, "kernel")->count(), threads * rounds / 2);
  EXPECT_NEAR(statistics.find(problem, "kernel")->mean_us(), 2.5, 1e-12);
}

}  // namespace
}  // namespace xpuruntime
