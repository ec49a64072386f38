#include "tune/race.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/expect_error.h"

namespace xpuruntime {
namespace {

/// What the machine adds to a batch: the true time of one call, how many calls, and when it starts.
using Noise = std::function<double(double true_us, std::int64_t calls, double now_us, std::mt19937_64& random)>;

double exact(double us, std::int64_t calls, double, std::mt19937_64&) { return us * static_cast<double>(calls); }

Noise gaussian(double deviation) {
  return [=](double us, std::int64_t calls, double now, std::mt19937_64& random) {
    return exact(us, calls, now, random) * std::max(0.1, std::normal_distribution(1.0, deviation)(random));
  };
}
/// Times only ever grow, and now and then a lot: a Pareto tail without a variance.
double heavy_tails(double us, std::int64_t calls, double now, std::mt19937_64& random) {
  const double tail = 0.01 * (std::pow(1 - std::uniform_real_distribution(0.0, 1.0)(random), -1 / 1.2) - 1);
  return exact(us, calls, now, random) * (1 + std::min(tail, 50.0));
}
/// The machine gets slower all the time, to half its speed in a tenth of a second.
double drift(double us, std::int64_t calls, double now, std::mt19937_64& random) {
  return gaussian(0.01)(us, calls, now, random) * (1 + now / 1e5);
}
/// Spells of 5 ms in which everything takes 1.8 times as long, 40 % of the time.
double slow_spells(double us, std::int64_t calls, double now, std::mt19937_64& random) {
  const bool slow = std::fmod(now, 12500) < 5000;
  return gaussian(0.01)(us, calls, now, random) * (slow ? 1.8 : 1);
}
/// One batch in ten is interrupted for 20 ms.
double outliers(double us, std::int64_t calls, double now, std::mt19937_64& random) {
  const bool hit = std::uniform_real_distribution(0.0, 1.0)(random) < 0.1;
  return gaussian(0.005)(us, calls, now, random) + (hit ? 20000 : 0);
}
/// Each batch finds the machine in one of two states.
double two_states(double us, std::int64_t calls, double now, std::mt19937_64& random) {
  const bool slow = std::uniform_real_distribution(0.0, 1.0)(random) < 0.35;
  return gaussian(0.005)(us, calls, now, random) * (slow ? 1.25 : 1);
}

struct Simulated {
  Race::Result result = {};
  double spent_us = 0;
  int batches = 0;
  std::vector<Race::Standing> standings = {};
};

Simulated simulate(const std::vector<double>& truth, std::optional<std::size_t> incumbent, const Noise& noise,
                   std::uint64_t seed, RaceOptions options = {}) {
  std::mt19937_64 random(seed);
  std::vector<double> first;
  double now = 0;
  for (const double us : truth) first.push_back(2 * noise(us, 1, now, random));  // cold
  Race race(first, incumbent, options);
  int batches = 0;
  while (const auto heat = race.next()) {
    const double took = noise(truth[heat->candidate], heat->calls, now, random);
    now += took;
    race.add(took);
    ++batches;
  }
  Simulated simulated{race.result(), race.spent_us(), batches};
  for (std::size_t i = 0; i < truth.size(); ++i) simulated.standings.push_back(race.standing(i));
  return simulated;
}

struct Machine {
  const char* name;
  Noise noise;
};
const Machine machines[] = {{"exact", exact},
                            {"gaussian_1_percent", gaussian(0.01)},
                            {"gaussian_5_percent", gaussian(0.05)},
                            {"heavy_tails", heavy_tails},
                            {"drift", drift},
                            {"slow_spells", slow_spells},
                            {"outliers", outliers},
                            {"two_states", two_states}};

void PrintTo(const Machine& machine, std::ostream* out) { *out << machine.name; }

class RaceOn : public ::testing::TestWithParam<Machine> {};
INSTANTIATE_TEST_SUITE_P(Machines, RaceOn, ::testing::ValuesIn(machines),
                         [](const auto& info) { return std::string(info.param.name); });

constexpr int races = 200;

struct Score {
  int within_2_percent = 0;
  double worst = 1;
};

Score play(const std::vector<double>& truth, std::optional<std::size_t> incumbent, const Noise& noise) {
  Score score;
  const double best = *std::min_element(truth.begin(), truth.end());
  for (int seed = 0; seed < races; ++seed) {
    const double chosen = truth[simulate(truth, incumbent, noise, seed).result.winner] / best;
    score.within_2_percent += chosen <= 1.02 + 1e-12;
    score.worst = std::max(score.worst, chosen);
  }
  return score;
}

TEST_P(RaceOn, FindsOneThatIsClearlyFaster) {
  const Score score = play({100, 80, 130, 900}, 0, GetParam().noise);
  EXPECT_GE(score.within_2_percent, races * 99 / 100);
  EXPECT_LE(score.worst, 1.25);
}

TEST_P(RaceOn, FindsAGainOfTenPercentAmongMany) {
  const Score score = play({10, 11, 9, 9.9, 12, 30, 10.5}, 0, GetParam().noise);
  EXPECT_GE(score.within_2_percent, races * 95 / 100);
  EXPECT_LE(score.worst, 12.0 / 9);
}

TEST_P(RaceOn, KeepsAnIncumbentThatIsTheFastest) {
  const Score score = play({52, 50, 60, 75}, 1, GetParam().noise);
  EXPECT_GE(score.within_2_percent, races * 98 / 100);
  EXPECT_LE(score.worst, 1.04 + 1e-12);
}

TEST_P(RaceOn, KeepsTheIncumbentAmongEquals) {
  int stayed = 0;
  for (int seed = 0; seed < races; ++seed) {
    stayed += simulate({20, 20, 20}, 2, GetParam().noise, seed).result.winner == 2;
  }
  EXPECT_GE(stayed, races * 97 / 100);
}

TEST_P(RaceOn, NeverChoosesTheHopeless) {
  const Score score = play({5, 500, 12, 5.05}, std::nullopt, GetParam().noise);
  EXPECT_LE(score.worst, 12.0 / 5);
  EXPECT_GE(score.within_2_percent, races * 99 / 100);
}

TEST_P(RaceOn, TimesFarFewerBatchesThanMeasuringAllToTheEnd) {
  const std::vector<double> truth = {100, 80, 130, 900, 200, 81};
  const double exhaustive = RaceOptions().most_rounds * static_cast<double>(truth.size());
  double batches = 0;
  for (int seed = 0; seed < races; ++seed) batches += simulate(truth, 0, GetParam().noise, seed).batches;
  EXPECT_LE(batches / races, 0.4 * exhaustive);
}

TEST(Race, LeavesAnIncumbentForAGainOfThreePercentOnAQuietMachine) {
  EXPECT_GE(play({100, 97}, 0, gaussian(0.003)).within_2_percent, races * 98 / 100);
}

TEST(Race, KeepsTheIncumbentForAGainOfOnePercentOnAQuietMachine) {
  for (int seed = 0; seed < races; ++seed) {
    const Simulated race = simulate({100, 99}, 0, gaussian(0.002), seed);
    ASSERT_EQ(race.result.winner, 0u) << seed;
    ASSERT_FALSE(race.result.cut_short);
  }
}

TEST(Race, ObeysTheMinimumGain) {
  RaceOptions options;
  options.min_gain = 0.2;
  EXPECT_EQ(simulate({100, 85}, 0, exact, 1, options).result.winner, 0u);
  options.min_gain = 0.1;
  EXPECT_EQ(simulate({100, 85}, 0, exact, 1, options).result.winner, 1u);
}

TEST(Race, TellsTheTimeAndTheGain) {
  const Simulated race = simulate({100, 75, 2000}, 0, gaussian(0.01), 3);
  EXPECT_EQ(race.result.winner, 1u);
  EXPECT_NEAR(race.result.gain, 0.25, 0.02);
  EXPECT_NEAR(*race.standings[1].time_us, 75, 1.5);
  EXPECT_GT(*race.standings[1].noise_us, 0);
  EXPECT_LT(*race.standings[1].noise_us, 3);
  EXPECT_NE(race.standings[2].dropped, "");
}

TEST(Race, ItsNoiseHoldsTheTruthNineteenTimesOfTwenty) {
  int inside = 0;
  for (int seed = 0; seed < 500; ++seed) {
    const Race::Standing standing = simulate({30, 30.1}, 0, gaussian(0.05), seed).standings[0];
    inside += std::abs(*standing.time_us - 30) <= *standing.noise_us;
  }
  EXPECT_GE(inside, 500 * 95 / 100);
}

TEST(Race, MakesBatchesLongEnoughForTheClock) {
  Race race({0.001, 3000}, std::nullopt, {});
  std::vector<double> longest = {0, 0};
  while (const auto heat = race.next()) {
    const double took = (heat->candidate == 0 ? 0.02 : 3000) * static_cast<double>(heat->calls);
    longest[heat->candidate] = std::max(longest[heat->candidate], took);
    race.add(took);
  }
  EXPECT_GE(longest[0], RaceOptions().batch_us * 0.5);
  EXPECT_LE(longest[0], RaceOptions().batch_us * 3);
  EXPECT_EQ(longest[1], 3000);
}

TEST(Race, GoesRoundByRound) {
  Race race({1000, 1000, 1000}, 0, {});
  std::vector<int> heats = {0, 0, 0};
  while (const auto heat = race.next()) {
    ++heats[heat->candidate];
    EXPECT_LE(*std::max_element(heats.begin(), heats.end()) - *std::min_element(heats.begin(), heats.end()), 1);
    race.add(1000);
  }
}

TEST(Race, ObeysTheBudgetAndSaysThatItWasCutShort) {
  RaceOptions options;
  options.budget_us = 20000;
  const Simulated race = simulate({1000, 990, 1010}, 0, gaussian(0.1), 7, options);
  EXPECT_TRUE(race.result.cut_short);
  EXPECT_LE(race.spent_us, 20000 * 1.3);
  EXPECT_EQ(race.result.winner, 0u);
}

TEST(Race, IsNotCutShortWhenItIsSure) {
  RaceOptions options;
  options.budget_us = 9000;
  const Simulated race = simulate({1000, 100000}, 0, gaussian(0.01), 7, options);
  EXPECT_FALSE(race.result.cut_short);
}

TEST(Race, JudgesByTheFirstCallsWhereTheBudgetIsNothing) {
  RaceOptions options;
  options.budget_us = 0;
  Race race({8e6, 7e6, 3e6}, 0, options);
  EXPECT_FALSE(race.next());
  EXPECT_TRUE(race.result().cut_short);
  EXPECT_EQ(race.result().winner, 2u);  // less than half the time, whatever the incumbent did once
  Race close({8e6, 7e6, 5e6}, 0, options);
  EXPECT_FALSE(close.next());
  EXPECT_EQ(close.result().winner, 0u);
}

// The incumbent's may have loaded a library.
TEST(Race, NobodyWinsByAShortFirstCall) {
  RaceOptions options;
  options.budget_us = 0;
  Race close({10000, 9000, 30}, 0, options);
  EXPECT_FALSE(close.next());
  EXPECT_EQ(close.result().winner, 0u);
  EXPECT_EQ(close.standing(1).time_us, 9000);
  EXPECT_FALSE(close.standing(1).noise_us);
}

TEST(Race, HoldsItsSureRoundsWhateverTheBudget) {
  RaceOptions options;
  options.budget_us = 0;
  options.sure_rounds = 1;
  Race race({150'000, 80'000}, 0, options);
  for (const double us : {140'000, 60'000}) {
    ASSERT_TRUE(race.next());
    race.add(us);
  }
  EXPECT_FALSE(race.next());
  EXPECT_TRUE(race.result().cut_short);
  EXPECT_EQ(race.result().winner, 1u);  // of calls this long, two each say much
  EXPECT_EQ(race.standing(0).time_us, 140'000);
  EXPECT_EQ(race.standing(1).time_us, 60'000);
}

TEST(Race, NobodyWinsByOneLongCallOfTheIncumbentThatWasInterrupted) {
  RaceOptions options;
  options.budget_us = 0;
  options.sure_rounds = 1;
  Race race({112'000, 115'000}, 0, options);
  for (const double us : {200'000, 110'000}) {
    ASSERT_TRUE(race.next());
    race.add(us);
  }
  EXPECT_FALSE(race.next());
  EXPECT_EQ(race.result().winner, 0u);  // its first call was as short as the other's
}

// Each race ends with few batches, of equals: whoever is ahead then was lucky.
TEST(Race, FewBatchesOnASharedMachineDoNotReplaceTheIncumbent) {
  const Noise shared = [](double us, std::int64_t calls, double now, std::mt19937_64& random) {
    const bool hit = std::uniform_real_distribution(0.0, 1.0)(random) < 0.5;
    return gaussian(0.01)(us, calls, now, random) * (hit ? 1.8 : 1);
  };
  struct Case {
    std::vector<double> truth;
    double budget_us;
    int sure_rounds = 0;
  };
  for (const auto& [truth, budget_us, sure_rounds] : {Case{std::vector(5, 60'000.0), 1e6},
                                                      {std::vector(3, 60'000.0), 4e5},
                                                      {std::vector(2, 150'000.0), 0, 1},
                                                      {std::vector(3, 5000.0), 40'000},
                                                      {std::vector(5, 100.0), 5e5}}) {
    RaceOptions options;
    options.budget_us = budget_us;
    options.sure_rounds = sure_rounds;
    int stayed = 0;
    for (int seed = 0; seed < races; ++seed) stayed += simulate(truth, 0, shared, seed, options).result.winner == 0;
    EXPECT_GE(stayed, races * 97 / 100) << truth.size() << " of " << truth[0] << " us";
  }
}

TEST(Race, CountsTimeThatWentByBetweenBatches) {
  Race race({10, 10}, 0, {});
  ASSERT_TRUE(race.next());
  race.add(600);
  race.spend(1e9);
  EXPECT_FALSE(race.next());
  EXPECT_TRUE(race.result().cut_short);
}

TEST(Race, GivesUpAtOnceOnWhatTookFarLongerTheFirstTime) {
  Race race({1000, 5e6}, std::nullopt, {});
  EXPECT_EQ(race.left(), 1u);
  while (const auto heat = race.next()) {
    EXPECT_EQ(heat->candidate, 0u);
    race.add(1000);
  }
  EXPECT_EQ(race.standing(1).time_us, 5e6);
  EXPECT_EQ(race.standing(1).runs, 1);
}

TEST(Race, MeasuresOneThatIsAlone) {
  const Simulated race = simulate({40}, 0, gaussian(0.01), 1);
  EXPECT_EQ(race.result.winner, 0u);
  EXPECT_NEAR(*race.standings[0].time_us, 40, 1);
}

TEST(Race, AsksAgainForABatchThatWasDiscarded) {
  Race race({100, 200}, 0, {});
  const auto heat = race.next();
  race.discard();
  const auto again = race.next();
  EXPECT_EQ(again->candidate, heat->candidate);
  EXPECT_EQ(again->calls, heat->calls);
  EXPECT_EQ(race.spent_us(), 0);
}

TEST(Race, EndsWhenItIsStopped) {
  Race race({100, 200}, 0, {});
  race.stop();
  EXPECT_FALSE(race.next());
  EXPECT_TRUE(race.over());
  EXPECT_TRUE(race.result().cut_short);
}

TEST(Race, SurvivesAClockThatStandsStill) {
  Race race({0, 0}, 0, {});
  int heats = 0;
  while (race.next()) {
    race.add(0);
    ASSERT_LT(++heats, 1000);
  }
  EXPECT_EQ(race.result().winner, 0u);
}

TEST(Race, RefusesWhatCannotBe) {
  expect_invalid("candidates", [] { Race({}, std::nullopt, {}); });
  expect_invalid("incumbent", [] { Race({1.0}, 1, {}); });
  Race race({1.0}, 0, {});
  expect_invalid("call next first", [&] { race.add(1); });
  ASSERT_TRUE(race.next());
  for (const double bad : {-1.0, std::nan(""), HUGE_VAL}) expect_invalid("finite", [&] { race.add(bad); });
}

}  // namespace
}  // namespace xpuruntime
