#include "runtime/tune_together.h"

#include <algorithm>

#include "runtime/tune_range.h"

namespace xpuruntime {
namespace {

/// How many problems a range will cost, more or less.
double weight_of(const ProblemRange& range) { return static_cast<double>(std::min<std::size_t>(range.count(), 24)); }

/// Problems and ranges that share a budget. Each has its share of it first; what some leave over goes to those that it
/// has cut short.
class Together {
 public:
  Together(Dispatcher& dispatcher, MeasuredChoices& measured, std::span<const Problem> problems,
           std::span<const ProblemRange> ranges, const TuneOptions& options,
           const std::function<void(const TuneResult&)>& finished)
      : dispatcher_(dispatcher),
        measured_(measured),
        problems_(problems),
        ranges_(ranges),
        options_(options),
        finished_(finished) {
    if (!options.progress) return;
    options_.progress = [this, tell = options.progress](TuneProgress progress) {
      progress.spent_s = measured_.now_s() - started_;
      cancelled_ = cancelled_ || !tell(progress);
      return !cancelled_;
    };
  }

  TunedTogether run() {
    tune_problems(dispatcher_, measured_, {}, options_, {});  // says what is wrong with the options
    double weight = static_cast<double>(problems_.size());
    for (const ProblemRange& range : ranges_) weight += weight_of(range);
    std::vector<std::size_t> all(problems_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    tune_some(all, static_cast<double>(problems_.size()) / std::max(1.0, weight));
    weight -= static_cast<double>(problems_.size());
    for (std::size_t i = 0; i < ranges_.size() && !cancelled_; ++i) {
      tunings_.emplace_back(dispatcher_, measured_, ranges_[i], options_, finished_);
      out_.ranges.push_back(tunings_.back().run(share_of_rest(weight_of(ranges_[i]) / weight)));
      weight -= weight_of(ranges_[i]);
    }
    if (options_.total_budget_s) {
      for (auto cut = cut_problems(); !cut.empty() && !cancelled_; cut = cut_problems()) tune_some(cut, 1);
      while (ranges_got_on()) {
      }
    }
    out_.cancelled = cancelled_;
    if (!cancelled_) add_those_not_begun();
    return std::move(out_);
  }

 private:
  double rest() const { return std::max(0.0, options_.total_budget_s.value_or(0) - (measured_.now_s() - started_)); }

  std::optional<double> share_of_rest(double share) const {
    return options_.total_budget_s ? std::optional(rest() * share) : std::nullopt;
  }

  void tune_some(const std::vector<std::size_t>& which, double share) {
    if (which.empty() || cancelled_) return;
    TuneOptions options = options_;
    options.total_budget_s = share_of_rest(share);
    std::vector<Problem> asked;
    for (const std::size_t i : which) {
      asked.push_back(problems_[i]);
      had_[i] = budget_of_each(options.total_budget_s.value_or(0), which.size());
    }
    std::size_t done = 0;
    tune_problems(dispatcher_, measured_, asked, options, [&](const TuneResult& result) {
      keep(which[done++], result);
      if (finished_) finished_(result);
    });
  }

  double budget_of_each(double total, std::size_t problems) const {
    return std::min(options_.problem_budget_s, total / static_cast<double>(std::max<std::size_t>(1, problems)));
  }

  /// Of two races that were cut short, the one with more calls.
  void keep(std::size_t index, TuneResult result) {
    if (index == out_.results.size()) return out_.results.push_back(std::move(result));
    TuneResult& before = out_.results[index];
    const double spent = before.spent_s + result.spent_s;
    const bool better = !result.cut_short || before.chosen.empty() || calls_of(result) > calls_of(before);
    if (better && !result.cancelled && !result.chosen.empty()) before = std::move(result);
    before.spent_s = spent;
  }

  void add_those_not_begun() {
    for (std::size_t i = out_.results.size(); i < problems_.size(); ++i) {
      TuneResult& result = out_.results.emplace_back();
      result.problem = problems_[i];
      result.cut_short = true;
      result.cut_by = "total_budget_s";
      result.because = result.not_stored = "not tuned: total_budget_s is spent";
    }
  }

  static std::uint64_t calls_of(const TuneResult& result) {
    std::uint64_t calls = 0;
    for (const TunedCandidate& candidate : result.candidates) calls += static_cast<std::uint64_t>(candidate.runs);
    return calls;
  }

  /// Those that have had no turn, and as many of those that the total budget ended as can have clearly more of it now.
  std::vector<std::size_t> cut_problems() const {
    std::vector<std::size_t> cut;
    if (rest() <= 0) return cut;
    for (std::size_t i = 0; i < problems_.size(); ++i) {
      if (i >= out_.results.size() || out_.results[i].cut_by == "total_budget_s") cut.push_back(i);
    }
    for (;;) {
      const double each = budget_of_each(rest(), cut.size());
      const double enough = each < options_.problem_budget_s ? each / 1.25 : each;
      const auto had_enough = std::find_if(cut.rbegin(), cut.rend(),
                                           [&](std::size_t i) { return i < out_.results.size() && had_[i] >= enough; });
      if (had_enough == cut.rend()) return cut;
      cut.erase(std::next(had_enough).base());
    }
  }

  /// Gives what is left to the ranges that were cut short, in equal parts. False where none has held a race in it.
  bool ranges_got_on() {
    std::vector<std::size_t> cut;
    for (std::size_t i = 0; i < tunings_.size(); ++i) {
      if (tunings_[i].may_go_on(rest())) cut.push_back(i);
    }
    bool got_on = false;
    for (std::size_t i = 0; i < cut.size() && !cancelled_; ++i) {
      got_on = goes_on(cut[i], rest() / static_cast<double>(cut.size() - i)) || got_on;
    }
    return got_on && !cancelled_;
  }

  bool goes_on(std::size_t index, double seconds) {
    const std::size_t races = tunings_[index].races();
    RangeResult result = tunings_[index].run(seconds);
    RangeResult& before = out_.ranges[index];
    // Sizes that only the larger budget takes in may be left without a choice.
    if (!cancelled_ && (result.complete || !before.complete)) before = result;
    before.spent_s = result.spent_s;
    return tunings_[index].races() > races;
  }

  Dispatcher& dispatcher_;
  MeasuredChoices& measured_;
  const std::span<const Problem> problems_;
  const std::span<const ProblemRange> ranges_;
  TuneOptions options_;
  const std::function<void(const TuneResult&)>& finished_;
  const double started_ = measured_.now_s();
  std::vector<double> had_ = std::vector<double>(problems_.size());  // of the budget, each problem, the last time
  std::vector<RangeTuning> tunings_ = {};                            // of the ranges that have had their turn
  bool cancelled_ = false;
  TunedTogether out_ = {};
};

}  // namespace

bool tune_problems(Dispatcher& dispatcher, MeasuredChoices& measured, std::span<const Problem> problems,
                   const TuneOptions& options, const std::function<void(const TuneResult&)>& finished) {
  // What runs without measuring: for a policy that asks for the least memory, that.
  KernelPolicy unmeasured;
  if (dispatcher.policy().auto_strategy != Strategy::lowest_memory) {
    unmeasured.auto_strategy = Strategy::first_supported;
  }
  std::vector<TuneTask> tasks;
  for (const Problem& problem : problems) {
    const ScopedLock unlocked(dispatcher, {});
    const ScopedPolicy scope(dispatcher, unmeasured);
    const Decision decision = dispatcher.explain(problem);
    tasks.push_back({decision.problem, decision.kernel, {}});
  }
  const bool complete = measured.tune_all(std::move(tasks), options, finished);
  measured.refresh();
  return complete;
}

TunedTogether tune_together(Dispatcher& dispatcher, MeasuredChoices& measured, std::span<const Problem> problems,
                            std::span<const ProblemRange> ranges, const TuneOptions& options,
                            const std::function<void(const TuneResult&)>& finished) {
  return Together(dispatcher, measured, problems, ranges, options, finished).run();
}

}  // namespace xpuruntime
