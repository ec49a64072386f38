#pragma once

#include <string_view>
#include <vector>

#include "tune/contender.h"
#include "tune/race.h"
#include "tune/reference.h"
#include "tune/timer.h"

namespace xpuruntime {

/// What Tuner::tune works on: one problem, from its candidates to the choice.
class Tuning {
 public:
  /// `before` is how far the run is that this problem is a part of. All
  /// references must stay.
  Tuning(KernelRegistry& registry, const Problem& problem, std::string_view incumbent, const TuneOptions& options,
         const Stopwatch::Clock& clock, const TuneProgress& before);

  /// `quarantined` are kernels that are not tried again; entries of other problems do not matter.
  TuneResult run(const std::vector<QuarantineEntry>& quarantined);

 private:
  /// Numbers to compare a result with that has no reference, or only a part of
  /// one.
  struct Yardstick {
    std::string kernel = {};
    std::vector<Tensor> outputs = {};  // on the host
  };

  void list_candidates();
  bool known_bad(Contender& contender) const;
  void add_variants(const Track& track);
  void run_all();
  bool keep_going(std::size_t left);
  double total_left_us();
  void admit_all(const Operands& operands, const Track& track);
  void admit(Contender& contender, const Operands& operands, const Track& track);
  void pass_over_the_reference();
  void doubt_a_lone_reference();
  Status run_again(Contender& contender, const Track& track);
  Status run_to_check(const Contender& contender, const Operands& operands, const Track& track, double* took_us);
  static bool is_long(const Contender& contender, const Track& track);
  bool has_rough_time(Contender& contender, bool won, const Track& track);
  void run_slow_ones_again(const Operands& operands, const Track& track);
  void watch_inputs(const Operands& operands);
  bool restored_inputs(const Operands& operands);
  void judge_run(Contender& contender, const Status& status, const Operands& operands);
  bool refuse_input_writers(const std::vector<std::size_t>& entered, const Operands& operands);
  void probe(Contender& contender, const Operands& operands, const Track& track);
  void check(Contender& contender, const std::vector<Tensor>& outputs);
  void check_with_yardstick(Contender& contender, const std::vector<Tensor>& outputs);
  std::vector<std::size_t> entrants(RaceOptions& rules);
  bool race(const Operands& operands, const Track& track);
  bool run_heats(Race& race, const std::vector<std::size_t>& entered, const Operands& operands, const Track& track);
  std::optional<double> time_batch(const Contender& contender, std::int64_t calls, const Track& track, Race& race,
                                   Status& status);
  bool still_right(Contender& winner, const Operands& operands, const Track& track);
  void draw_other_inputs(const Operands& operands);
  void renew_yardstick(const Contender& winner, const Operands& operands, const Track& track);
  bool finish(const Race& race, const std::vector<std::size_t>& entered, const Operands& operands, const Track& track);
  std::string budget_text() const;
  std::string why(const Race::Result& result, const std::vector<std::size_t>& entered) const;
  const Contender* incumbent() const;
  std::size_t usable() const;

  KernelRegistry& registry_;
  const Problem problem_;
  const TuneOptions& options_;
  const TuneProgress& before_;
  Stopwatch watch_;
  BatchTimer timer_;
  std::uint64_t seed_ = 0;  // of the numbers that are in the inputs
  bool raced_ = false;      // a batch was run
  double spent_us_ = 0;     // in first runs and timed batches
  double made_us_ = 0;      // until the first kernel ran: the tensors and their reference
  double check_us_ = 0;     // the longest of the first runs, without the call
  bool cut_short_ = false;
  bool late_ = false;  // the total budget left the race less time than the problem's own
  bool clock_stood_still_ = false;
  std::vector<Contender> contenders_;
  std::optional<std::uint64_t> inputs_hash_;  // unset: nobody takes part who might write to them
  std::optional<Reference> reference_;
  std::optional<Yardstick> yardstick_;
  std::vector<QuarantineEntry> quarantined_;  // of this problem
  TuneResult result_;
};

}  // namespace xpuruntime
