#include "cpu_bench_race.h"

#include <algorithm>

namespace xpuruntime::bench {
namespace {

// A kernel of ours that is this much slower than our best is not timed further: after a first look, after three rounds.
constexpr double hopeless_at_first = 3.0;
constexpr double hopeless_after_rounds = 1.5;
constexpr int look_again_after = 3;
// Calls that take longer find their data and threads as they need them; shorter ones get some calls to wake up.
constexpr double needs_no_warming_us = 3000;

double us_per_call(Contender& contender, std::uint64_t calls) {
  return contender.run(calls) * 1e6 / static_cast<double>(calls);
}

/// How many calls fill a block, by trying; the first call made its plan before. On a busy machine one try says little.
double calibrate(Entrant& entrant, const RaceSettings& settings) {
  const int tries = settings.least ? 5 : 2;
  for (;;) {
    double us = us_per_call(*entrant.contender, entrant.calls);
    for (int i = 1; i < tries && us < needs_no_warming_us; ++i) {
      us = std::min(us, us_per_call(*entrant.contender, entrant.calls));
    }
    const double block = us * static_cast<double>(entrant.calls);
    if (block >= settings.block_us / 2) {
      if (block < settings.block_us) entrant.calls = static_cast<std::uint64_t>(settings.block_us / us) + 1;
      return us;
    }
    entrant.calls *= 2;
  }
}

double best_of_ours(const std::vector<Entrant>& entrants, const std::vector<double>& us) {
  double best = 1e300;
  for (std::size_t i = 0; i < entrants.size(); ++i) {
    if (entrants[i].ours) best = std::min(best, us[i]);
  }
  return best;
}

void drop_hopeless(std::vector<Entrant>& entrants, std::vector<double>& us, double factor) {
  const double best = best_of_ours(entrants, us);
  for (std::size_t i = entrants.size(); i-- > 0;) {
    if (!entrants[i].ours || entrants[i].stays || us[i] <= factor * best) continue;
    entrants.erase(entrants.begin() + static_cast<std::ptrdiff_t>(i));
    us.erase(us.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

int rounds_within_budget(const std::vector<Entrant>& entrants, const std::vector<double>& us,
                         const RaceSettings& settings) {
  double round = 0;
  for (std::size_t i = 0; i < us.size(); ++i) round += us[i] * static_cast<double>(entrants[i].calls);
  return std::clamp(static_cast<int>(settings.budget_us / round), std::min(3, settings.rounds), settings.rounds);
}

void one_block(Entrant& entrant, double us, const RaceSettings& settings) {
  settings.settle();
  if (us < needs_no_warming_us) entrant.contender->run(1 + entrant.calls / 8);
  entrant.times.push_back(us_per_call(*entrant.contender, entrant.calls));
}

}  // namespace

double Entrant::time(bool least) const {
  std::vector<double> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t middle = sorted.size() / 2;
  if (sorted.empty()) return 0;
  if (least) return sorted.front();
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

void race(std::vector<Entrant>& entrants, const RaceSettings& settings) {
  std::vector<double> us;
  for (Entrant& entrant : entrants) {
    settings.settle();
    us.push_back(calibrate(entrant, settings));
  }
  drop_hopeless(entrants, us, hopeless_at_first);
  const int rounds = rounds_within_budget(entrants, us, settings);
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < entrants.size(); ++i) one_block(entrants[i], us[i], settings);
    if (round + 1 != look_again_after) continue;
    for (std::size_t i = 0; i < entrants.size(); ++i) us[i] = entrants[i].time(settings.least);
    drop_hopeless(entrants, us, hopeless_after_rounds);
  }
}

}  // namespace xpuruntime::bench
