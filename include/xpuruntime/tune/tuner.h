#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/tune/measurement.h"

namespace xpuruntime {

/// How far a tuning run is; what a progress bar shows.
struct TuneProgress {
  std::string problem = {};
  std::size_t problem_index = 0;  // of problem_count
  std::size_t problem_count = 1;
  std::size_t candidates_left = 0;  // still in the race
  double spent_s = 0;               // over all problems so far
  double remaining_s = 0;           // at most, by the budgets
};

struct TuneOptions {
  double problem_budget_s = 1.0;              // at most, for measuring one problem
  std::optional<double> total_budget_s = {};  // for all problems of a run
  double min_gain = 0.02;                     // less is no reason to leave the incumbent
  double probe_timeout_s = 10;                // a third-party kernel that takes longer in its first run hangs
  bool isolate = true;                        // third-party kernels run in a child process first
  std::uint64_t seed = 1;                     // of the random inputs
  /// Called between measurements, from the thread that tunes. False stops: nothing more is measured, and what was
  /// finished so far is kept.
  std::function<bool(const TuneProgress&)> progress = {};
};

enum class TuneOutcome : std::uint8_t { won, lost, refused, quarantined };
std::string_view to_string(TuneOutcome outcome);

/// One kernel in the race.
struct TunedCandidate {
  std::string kernel = {};
  std::string plan = {};
  TuneOutcome outcome = TuneOutcome::lost;
  std::string reason = {};  // why refused or quarantined, or when it was dropped
  std::optional<double> time_us = {};
  std::optional<double> noise_us = {};
  std::int64_t runs = 0;
  std::optional<std::uint64_t> workspace_bytes = {};
  std::optional<double> error = {};      // relative, against the reference
  std::optional<double> tolerance = {};  // what it may be
};

struct TuneResult {
  Problem problem = {};
  std::string incumbent = {};
  std::string chosen = {};  // empty: cancelled or nothing could run
  std::string because = {};
  bool cut_short = false;
  bool cancelled = false;
  double spent_s = 0;
  std::vector<TunedCandidate> candidates = {};  // in table order

  /// What a store keeps of it. `now` in seconds since 1970.
  TuneRecord record(std::int64_t now) const;
};

/// Times every kernel that can run a problem, on tensors like the caller's, and finds the fastest that is right.
class Tuner {
 public:
  explicit Tuner(KernelRegistry& registry) : registry_(registry) {}

  /// `incumbent` is what would be chosen without measuring; it stays unless another gains enough.
  /// `quarantined` are kernels that are not tried again.
  TuneResult tune(const Problem& problem, std::string_view incumbent, const TuneOptions& options = {},
                  const std::vector<QuarantineEntry>& quarantined = {});

 private:
  KernelRegistry& registry_;
};

}  // namespace xpuruntime
