#include "tune/range_search.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>

namespace xpuruntime {
namespace {

using Sizes = std::vector<std::int64_t>;
/// Microseconds that a kernel takes at these sizes; NaN: it cannot run.
using Cost = std::function<double(const Sizes&)>;
using Model = std::map<std::string, Cost>;

constexpr double cannot = NAN;

/// A range of a made-up machine whose true times are known.
struct World {
  std::vector<SizeRange> names = {};
  Model model = {};
  double noise = 0;        // each reading is off by up to this share
  double interrupted = 0;  // so many races are cut short, with times of some kernels far too long
  std::size_t points = 0;
  std::mt19937 random{1};

  std::size_t count() const {
    std::size_t product = 1;
    for (const SizeRange& name : names) product *= static_cast<std::size_t>(name.high - name.low + 1);
    return product;
  }
  Sizes sizes(std::size_t index) const {
    Sizes out(names.size());
    for (std::size_t i = names.size(); i-- > 0;) {
      const auto extent = static_cast<std::size_t>(names[i].high - names[i].low + 1);
      out[i] = names[i].low + static_cast<std::int64_t>(index % extent);
      index /= extent;
    }
    return out;
  }
  double time(const std::string& kernel, std::size_t index) const { return model.at(kernel)(sizes(index)); }

  std::vector<std::uint32_t> classes() const {
    std::vector<std::uint32_t> out;
    for (std::size_t index = 0; index < count(); ++index) {
      std::uint32_t bits = 0;
      for (const auto& [kernel, cost] : model) bits = bits * 2 + !std::isnan(cost(sizes(index)));
      out.push_back(bits == 0 ? nothing_runs : bits);
    }
    return out;
  }

  /// The first by name that can.
  std::string default_of(std::size_t index) const {
    for (const auto& [kernel, cost] : model) {
      if (!std::isnan(cost(sizes(index)))) return kernel;
    }
    return "";
  }
  std::string kernel_of(const RangeChoices& found, std::size_t index) const {
    const int choice = found.choice[index];
    return choice < 0 ? default_of(index) : found.kernels[static_cast<std::size_t>(choice)];
  }

  /// As a race: the default stays unless another is 2 % faster.
  TuneResult race(std::size_t index) {
    ++points;
    TuneResult result;
    std::uniform_real_distribution<double> chance(0, 1);
    result.cut_short = chance(random) < interrupted;
    std::uniform_real_distribution<double> off(1 - noise, 1 + noise);
    for (const auto& [kernel, cost] : model) {
      const double us = cost(sizes(index));
      if (std::isnan(us)) continue;
      TunedCandidate candidate;
      candidate.kernel = kernel;
      candidate.time_us = us * off(random) * (result.cut_short && chance(random) < 0.5 ? 30 : 1);
      candidate.noise_us = us * noise;
      const bool first = result.candidates.empty();
      result.candidates.push_back(candidate);
      const auto chosen = std::find_if(result.candidates.begin(), result.candidates.end(),
                                       [&](const TunedCandidate& c) { return c.kernel == result.chosen; });
      if (first || *candidate.time_us < 0.98 * *chosen->time_us) result.chosen = kernel;
    }
    return result;
  }

  RangeChoices search(std::size_t most_points = 256) {
    const auto groups = classes();
    return search_range(names, groups, {0.02, most_points}, [&](std::size_t index) { return race(index); });
  }
};

/// What a search lost against choosing for every problem alone, by brute force: the sum of times, over all that can
/// run. What it left undecided runs by default.
double loss_of(const World& world, const RangeChoices& found) {
  double ours = 0, best = 0;
  std::size_t undecided = 0;
  for (std::size_t index = 0; index < world.count(); ++index) {
    double least = INFINITY;
    for (const auto& [kernel, cost] : world.model) {
      const double us = world.time(kernel, index);
      if (us < least) least = us;
    }
    if (std::isinf(least)) {
      EXPECT_EQ(found.choice[index], -1);
      continue;
    }
    undecided += found.choice[index] < 0;
    const double own = world.time(world.kernel_of(found, index), index);
    EXPECT_FALSE(std::isnan(own)) << "a kernel that refuses problem " << index;
    ours += own;
    best += least;
  }
  EXPECT_EQ(undecided, found.undecided);
  return ours / best;
}

double m(const Sizes& sizes) { return static_cast<double>(sizes[0]); }

World products(double noise) {
  World world;
  world.names = {{"m", 1, 512}};
  world.noise = noise;
  // As the kernels of a product are: one for few rows, one that starts late, one in tiles of 32 rows.
  world.model = {{"blas", [](const Sizes& s) { return 12 + 0.9 * m(s); }},
                 {"skinny", [](const Sizes& s) { return m(s) > 64 ? cannot : 2 + 1.3 * m(s); }},
                 {"tiles", [](const Sizes& s) { return 30 + 0.75 * 32 * std::ceil(m(s) / 32); }},
                 {"reference", [](const Sizes& s) { return 40 * m(s); }}};
  return world;
}

TEST(RangeSearch, LosesLessThanThreePercentAtATenthOfThePoints) {
  for (const double noise : {0.0, 0.005, 0.02}) {
    World world = products(noise);
    const RangeChoices found = world.search(51);
    EXPECT_LE(loss_of(world, found), 1.03) << noise;
    EXPECT_LE(world.points, 51u) << noise;
    EXPECT_EQ(found.measured, world.points);
  }
}

TEST(RangeSearch, FindsWhereTheChoiceChangesToTheSize) {
  World world;
  world.names = {{"m", 1, 512}};
  world.model = {{"a", [](const Sizes& s) { return m(s) < 200 ? 1.0 : 2.0; }},
                 {"b", [](const Sizes& s) { return m(s) < 200 ? 2.0 : 1.0; }}};
  const RangeChoices found = world.search();
  const auto parts = parts_of(world.names, found.choice);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].names, (std::vector<SizeRange>{{"m", 1, 199}}));
  EXPECT_EQ(parts[1].names, (std::vector<SizeRange>{{"m", 200, 512}}));
  EXPECT_EQ(found.kernels[static_cast<std::size_t>(parts[1].kernel)], "b");
  EXPECT_LE(world.points, 40u);
}

TEST(RangeSearch, ADifferenceWithinTheMarginOfTheRaceIsNoChange) {
  World world;
  world.names = {{"m", 1, 512}};
  // Two that are equal: now one wins by up to 3 % and now the other, by chance.
  world.noise = 0.015;
  world.model = {{"a", [](const Sizes& s) { return m(s); }}, {"b", [](const Sizes& s) { return m(s); }}};
  const RangeChoices found = world.search();
  EXPECT_EQ(parts_of(world.names, found.choice).size(), 1u);
  EXPECT_LE(world.points, 40u);
}

TEST(RangeSearch, WhatARaceThatWasCutShortSaysIsTriedAgain) {
  std::size_t parts = 0;
  for (unsigned seed = 0; seed < 20; ++seed) {
    World world = products(0.005);
    world.random.seed(seed);
    world.interrupted = 0.1;
    const RangeChoices found = world.search(51);
    EXPECT_LE(world.points, 51u);
    EXPECT_LE(loss_of(world, found), 1.01) << seed;
    parts += parts_of(world.names, found.choice).size();
  }
  EXPECT_LE(parts, 115u);  // 5 each without interruptions, 126 where all that is said is believed
}

TEST(RangeSearch, GivesNoKernelToASizeThatItRefuses) {
  World world;
  world.names = {{"m", 1, 512}};
  world.model = {{"eights", [](const Sizes& s) { return s[0] % 8 != 0 ? cannot : m(s); }},
                 {"hole", [](const Sizes& s) { return s[0] == 300 ? cannot : 2 * m(s); }},
                 {"slow", [](const Sizes& s) { return s[0] < 4 ? cannot : 9 * m(s); }}};
  const RangeChoices found = world.search();
  EXPECT_EQ(loss_of(world, found), 1);  // 300 is no multiple of 8
  EXPECT_LE(world.points, 90u);         // three classes of sizes, not one for each hole
  for (std::int64_t size = 1; size <= 512; ++size) {
    const std::string expected = size % 8 == 0 ? "eights" : size == 300 ? "slow" : "hole";
    EXPECT_EQ(found.kernels[static_cast<std::size_t>(found.choice[static_cast<std::size_t>(size - 1)])], expected);
  }
}

TEST(RangeSearch, SaysNothingAboutSizesThatNothingCanRun) {
  World world;
  world.names = {{"m", 1, 64}};
  world.model = {{"a", [](const Sizes& s) { return s[0] > 9 && s[0] < 20 ? cannot : m(s); }}};
  const RangeChoices found = world.search();
  const auto parts = parts_of(world.names, found.choice);
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].names, (std::vector<SizeRange>{{"m", 1, 9}}));
  EXPECT_EQ(parts[1].names, (std::vector<SizeRange>{{"m", 20, 64}}));
}

TEST(RangeSearch, CutsTwoNamesIntoBoxes) {
  World world;
  world.names = {{"b", 1, 16}, {"s", 1, 256}};
  world.model = {{"few", [](const Sizes& s) { return 1 + static_cast<double>(s[0] * s[1]); }},
                 {"many", [](const Sizes& s) { return 100 + 0.5 * static_cast<double>(s[0] * s[1]); }}};
  const RangeChoices found = world.search(world.count() / 10);
  EXPECT_LE(loss_of(world, found), 1.03);
  EXPECT_LE(world.points, world.count() / 10);
  // The parts are what was chosen: each problem is in exactly one of them, and has its kernel.
  std::vector<int> covered(world.count(), -1);
  for (const RangePart& part : parts_of(world.names, found.choice)) {
    for (std::size_t index = 0; index < world.count(); ++index) {
      const Sizes sizes = world.sizes(index);
      bool inside = true;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        inside = inside && sizes[i] >= part.names[i].low && sizes[i] <= part.names[i].high;
      }
      if (!inside) continue;
      EXPECT_EQ(covered[index], -1);
      covered[index] = part.kernel;
    }
  }
  EXPECT_EQ(covered, found.choice);
}

// Random machines: three to five kernels with a start, a slope and tiles of their own, some for a part of the sizes.
TEST(RangeSearch, HoldsItsBoundOnMostRandomMachines) {
  std::mt19937 random(7);
  const auto between = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
  int machines = 0, within = 0;
  double worst = 1;
  for (; machines < 100; ++machines) {
    World world;
    world.names = {{"m", 1, 512}};
    world.noise = 0.005;
    world.random.seed(static_cast<unsigned>(machines));
    const int kernels = static_cast<int>(between(3, 6));
    for (int i = 0; i < kernels; ++i) {
      const double start = between(1, 60), slope = between(0.5, 2), tile = std::exp2(std::floor(between(0, 5)));
      const double most = i == 0 ? 512 : between(16, 1500);
      world.model["k" + std::to_string(i)] = [=](const Sizes& s) {
        return m(s) > most ? cannot : start + slope * tile * std::ceil(m(s) / tile);
      };
    }
    const RangeChoices found = world.search(51);
    EXPECT_LE(world.points, 51u);
    const double loss = loss_of(world, found);
    within += loss <= 1.03;
    worst = std::max(worst, loss);
  }
  EXPECT_GE(within, 98) << "worst " << worst;
  EXPECT_LE(worst, 1.05);
}

TEST(RangeSearch, WhereThePointsRunOutTheEndsDecideIfTheyAgreeAndAreCounted) {
  World world = products(0);
  const RangeChoices found = world.search(8);
  EXPECT_EQ(world.points, 8u);
  EXPECT_GT(found.guessed, 0u);
  EXPECT_GT(found.undecided, 0u);
  EXPECT_LE(found.guessed + found.undecided + world.points, found.choice.size());  // what was measured is no guess
  EXPECT_GE(loss_of(world, found), 1);  // and every size has a kernel that can run it
}

// The reference wins where there is nothing to do, and nowhere else.
TEST(RangeSearch, StoppedAtAnyMomentItMakesNoSizeSlowerThanItWas) {
  World world;
  world.names = {{"n", 1, 512}};
  world.model = {{"fast", [](const Sizes& s) { return 1 + 0.01 * m(s); }},
                 {"reference", [](const Sizes& s) { return 0.5 * m(s); }}};
  for (int races = 0; races < 30; ++races) {
    for (const bool points : {false, true}) {
      int left = races;
      const RangeSearchOptions options{0.02, points ? static_cast<std::size_t>(races) : 256};
      const auto found = search_range(world.names, world.classes(), options, [&](std::size_t index) {
        return points || left-- > 0 ? std::optional(world.race(index)) : std::nullopt;
      });
      for (std::size_t index = 0; index < world.count(); ++index) {
        EXPECT_LE(world.time(world.kernel_of(found, index), index), 1.04 * world.time("fast", index))
            << index << " after " << races;
      }
    }
  }
}

TEST(RangeSearch, StopsWhenItIsTold) {
  World world = products(0);
  int left = 5;
  const auto found = search_range(world.names, world.classes(), {}, [&](std::size_t index) {
    return left-- > 0 ? std::optional(world.race(index)) : std::nullopt;
  });
  EXPECT_TRUE(found.stopped);
  EXPECT_EQ(found.measured, 5u);
  EXPECT_EQ(found.undecided + 5, found.choice.size());
  EXPECT_EQ(found.guessed, 0u);
  // Each class of sizes has had its turn by then.
  for (const std::size_t end : {0, 63, 64, 511}) EXPECT_GE(found.choice[end], 0) << end;
  EXPECT_GE(loss_of(world, found), 1);
}

TEST(RangeSearch, OneSizeIsMeasuredOnceAndAFailureIsNoChoice) {
  World world = products(0);
  world.names = {{"m", 7, 7}};
  EXPECT_EQ(world.search().choice.size(), 1u);
  EXPECT_EQ(world.points, 1u);
  const auto failed = search_range(world.names, world.classes(), {}, [](std::size_t) { return TuneResult{}; });
  EXPECT_EQ(failed.choice, std::vector<int>{-1});
  EXPECT_EQ(failed.undecided, 0u);
}

TEST(RangeSearch, SizesBetweenFailuresThatTheBudgetCutShortAreUndecided) {
  World world = products(0);
  TuneResult cut;
  cut.cut_short = true;
  const auto found = search_range(world.names, world.classes(), {}, [&](std::size_t) { return cut; });
  EXPECT_EQ(found.undecided, world.count());
}

}  // namespace
}  // namespace xpuruntime
