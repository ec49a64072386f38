#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "runtime/measured_choices.h"
#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime {

/// Tunes one range, for as long as it may. Given more time it goes on from the races that it has held: the search takes
/// the same way through them again, which costs next to nothing.
class RangeTuning {
 public:
  /// All references must stay, and so must the policy in force.
  RangeTuning(Dispatcher& dispatcher, MeasuredChoices& measured, const ProblemRange& range, const TuneOptions& options,
              const std::function<void(const TuneResult&)>& finished);

  /// For so many seconds more; nothing: until it is done. The result is that of all runs together.
  RangeResult run(std::optional<double> seconds);

  /// How many races all runs have held that found something.
  std::size_t races() const { return races_; }
  /// Whether so much more time may help: it was cut short, and looking at all sizes again would leave some of it.
  bool may_go_on(double seconds) const { return out_.cut_short && seconds > looking_s_; }

 private:
  struct Race {
    TuneResult result = {};
    bool ours = false;  // what runs the size is the strategy's choice, in the precision of the range
  };

  Decision decide(const Problem& problem) const;
  double spent_s() const { return measured_.now_s() - started_; }
  void start(std::optional<double> seconds);
  void cut();
  bool keep_going();
  bool ask_kernels();
  std::vector<std::uint32_t> affordable_classes();
  TuneOptions options_of_race(std::optional<double> rest_s) const;
  bool hold_race(std::size_t index);
  std::optional<TuneResult> measure(std::size_t index);

  Dispatcher& dispatcher_;
  MeasuredChoices& measured_;
  const ProblemRange& range_;
  const TuneOptions& options_;
  const std::function<void(const TuneResult&)>& finished_;
  const std::size_t most_points_;

  // Of all runs.
  std::vector<std::uint32_t> classes_ = {};             // empty: the kernels were not all asked yet
  std::map<std::size_t, std::vector<Race>> held_ = {};  // by index; some sizes have two
  std::size_t races_ = 0;
  double most_to_make_s_ = 0;  // for the tensors of one size
  double looking_s_ = 0;       // what a run takes before its first race
  RangeResult out_ = {};

  // Of one run.
  double started_ = 0;  // as if all runs had been one
  std::optional<double> budget_s_ = {};
  std::map<std::size_t, std::size_t> asked_ = {};  // how often the search asked for a size
  std::size_t points_ = 0;                         // races that it was given
  bool cancelled_ = false;
  bool untimed_ = false;
};

}  // namespace xpuruntime
