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
  double problem_budget_s = 0.5;              // at most, for measuring one problem
  std::optional<double> total_budget_s = {};  // for all that a run does; what is left is shared out evenly
  double min_gain = 0.02;                     // less is no reason to leave the incumbent
  double probe_timeout_s = 10;                // a third-party kernel that takes longer in its first run hangs
  bool isolate = true;                        // third-party kernels run in a child process first
  std::uint64_t seed = 1;                     // of the random inputs
  std::size_t range_points = 0;               // problems of a range measured at most; 0: a tenth, from 32 to 256
  /// Called between measurements, from the thread that tunes. False stops: nothing more is measured, and what was
  /// finished so far is kept. What it throws comes out of tune.
  std::function<bool(const TuneProgress&)> progress = {};
};

enum class TuneOutcome : std::uint8_t { won, lost, refused, quarantined };
std::string_view to_string(TuneOutcome outcome);

/// One kernel in the race, or one of the plans it can make.
struct TunedCandidate {
  std::string kernel = {};
  std::string plan = {};
  TuneOutcome outcome = TuneOutcome::lost;
  std::string reason = {};  // why refused or quarantined, or when it was dropped
  std::optional<double> time_us = {};
  std::optional<double> noise_us = {};
  std::int64_t runs = 0;
  std::optional<std::uint64_t> workspace_bytes = {};
  std::optional<double> error = {};      // relative, against the reference; unset where nothing could be compared
  std::optional<double> tolerance = {};  // what it may be
  bool known_bad = false;                // was in quarantine before and not tried
  std::string kernel_version = {};       // Kernel::version
  std::string variant = {};              // the token it was prepared by; empty: the kernel's own choice
};

struct TuneResult {
  Problem problem = {};
  std::string incumbent = {};
  std::string chosen = {};  // empty: cancelled, not begun, or nothing could run
  std::string plan = {};    // the token of the plan that it was chosen with
  std::string because = {};
  double gain = 1;          // the incumbent's time by that of the choice
  bool cut_short = false;   // a budget ended the race before it was sure
  std::string cut_by = {};  // which: problem_budget_s or total_budget_s, of which each problem has its share
  bool cancelled = false;
  double spent_s = 0;                           // in all
  double measuring_s = 0;                       // of it, in first runs and timed batches
  int discarded = 0;                            // readings of the clock that could not be right
  std::vector<TunedCandidate> candidates = {};  // in table order
  std::string not_stored = {};                  // why what was found is not kept; empty: it is, or there is no store

  /// The rows of what would be chosen without measuring, by its own choice of a plan, and of the choice; null where it
  /// was not here.
  const TunedCandidate* default_row() const;
  const TunedCandidate* chosen_row() const;
  /// Whether the choice has a time. Without one nothing could be timed: what would be chosen without measuring stays.
  bool measured() const;

  /// What a store keeps of it. Of a cancelled one only what must not run. `now` in seconds since 1970.
  TuneRecord record(std::int64_t now) const;
};

/// One problem of a longer run.
struct TuneTask {
  Problem problem = {};
  std::string incumbent = {};
  std::vector<QuarantineEntry> quarantined = {};
};

/// Times every kernel that can run a problem, on tensors like the caller's, and finds the fastest that is right. Keeps
/// nothing between calls; several may be at work at once, though they disturb each other's times.
class Tuner {
 public:
  /// Microseconds since some moment. Readings that go backwards are thrown away.
  using Clock = std::function<double()>;

  /// Without a clock, the system's steady one.
  explicit Tuner(KernelRegistry& registry, Clock clock = {});

  /// `incumbent` is what would be chosen without measuring; it stays unless another gains enough. Empty: none.
  /// `quarantined` are kernels that are not tried again; entries of other problems do not matter.
  /// Throws for options and problems that cannot be right, and where the tensors do not fit the device.
  TuneResult tune(const Problem& problem, std::string_view incumbent, const TuneOptions& options = {},
                  const std::vector<QuarantineEntry>& quarantined = {});

  /// One after the other, under the total budget. `finished` gets each result, also that of a problem that failed
  /// (nothing chosen, the error in `because`). Where the budget is spent, the others have the shortest race, and for as
  /// long again. Returns false where it was cancelled, or that was spent too before every problem had its turn.
  bool tune_all(const std::vector<TuneTask>& tasks, const TuneOptions& options,
                const std::function<void(const TuneResult&)>& finished);

 private:
  KernelRegistry& registry_;
  Clock clock_;
};

}  // namespace xpuruntime
