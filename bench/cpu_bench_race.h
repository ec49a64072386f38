#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cpu_peers.h"

namespace xpuruntime::bench {

/// One who takes part, and what it took.
struct Entrant {
  std::string name = {};
  Contender* contender = nullptr;
  bool ours = false;               // leaves the race when hopeless; others stay
  bool stays = false;              // the chosen one stays whatever it takes
  std::uint64_t calls = 1;         // a block
  std::vector<double> times = {};  // microseconds a call, one for each block

  /// The median of the blocks, or the least.
  double time(bool least) const;
};

struct RaceSettings {
  double block_us = 2000;  // a block lasts at least about this long
  int rounds = 11;
  double budget_us = 1.5e6;              // rounds are left out, down to three, where they would take longer
  bool least = false;                    // counts the best block instead of the median one
  std::function<void()> settle = [] {};  // between blocks: threads of others may still spin
};

/// Blocks of calls of all entrants in turn, round by round, so that a slow spell of the machine hits all alike.
void race(std::vector<Entrant>& entrants, const RaceSettings& settings);

}  // namespace xpuruntime::bench
