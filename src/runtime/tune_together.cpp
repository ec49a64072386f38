#include <algorithm>

#include "core/clock.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

/// How many problems a range will cost, more or less.
double weight_of(const ProblemRange& range) { return static_cast<double>(std::min<std::size_t>(range.count(), 24)); }

/// Problems and ranges that share a budget. Each has its share of it first; what some leave over goes to those that it
/// has cut short.
class Together {
 public:
  Together(Runtime& runtime, std::span<const Problem> problems, std::span<const ProblemRange> ranges,
           const TuneOptions& options, const std::function<void(const TuneResult&)>& finished)
      : runtime_(runtime), problems_(problems), ranges_(ranges), options_(options), finished_(finished) {
    if (!options.progress) return;
    options_.progress = [this, tell = options.progress](TuneProgress progress) {
      progress.spent_s = seconds_now() - started_;
      cancelled_ = cancelled_ || !tell(progress);
      return !cancelled_;
    };
  }

  TunedTogether run() {
    runtime_.tune(std::span<const Problem>{}, options_);  // says what is wrong with the options
    double weight = static_cast<double>(problems_.size());
    for (const ProblemRange& range : ranges_) weight += weight_of(range);
    std::vector<std::size_t> all(problems_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    tune_problems(all, static_cast<double>(problems_.size()) / std::max(1.0, weight));
    weight -= static_cast<double>(problems_.size());
    for (std::size_t i = 0; i < ranges_.size() && !cancelled_; ++i) {
      out_.ranges.push_back(tune_range(i, weight_of(ranges_[i]) / weight));
      weight -= weight_of(ranges_[i]);
    }
    if (options_.total_budget_s) {
      for (auto cut = cut_problems(); !cut.empty() && !cancelled_; cut = cut_problems()) tune_problems(cut, 1);
      for (std::size_t i = 0; i < out_.ranges.size(); ++i) tune_again(i);
    }
    out_.cancelled = cancelled_;
    if (!cancelled_) add_those_not_begun();
    return std::move(out_);
  }

 private:
  double rest() const { return std::max(0.0, options_.total_budget_s.value_or(0) - (seconds_now() - started_)); }

  TuneOptions options_for(double share) const {
    TuneOptions options = options_;
    if (options.total_budget_s) options.total_budget_s = rest() * share;
    return options;
  }

  void tune_problems(const std::vector<std::size_t>& which, double share) {
    if (which.empty() || cancelled_) return;
    const TuneOptions options = options_for(share);
    std::vector<Problem> asked;
    for (const std::size_t i : which) {
      asked.push_back(problems_[i]);
      had_[i] = budget_of_each(options.total_budget_s.value_or(0), which.size());
    }
    std::size_t done = 0;
    runtime_.tune(asked, options, [&](const TuneResult& result) {
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

  RangeResult tune_range(std::size_t index, double share) {
    return runtime_.tune(ranges_[index], options_for(share), finished_);
  }

  void tune_again(std::size_t index) {
    const RangeResult& before = out_.ranges[index];
    if (cancelled_ || !before.cut_short || rest() <= before.spent_s) return;
    RangeResult result = tune_range(index, 1);
    if (!result.complete && (cancelled_ || before.complete)) return;
    if (result.covered < before.covered) return;
    result.spent_s += before.spent_s;
    out_.ranges[index] = std::move(result);
  }

  Runtime& runtime_;
  const std::span<const Problem> problems_;
  const std::span<const ProblemRange> ranges_;
  TuneOptions options_;
  const std::function<void(const TuneResult&)>& finished_;
  const double started_ = seconds_now();
  std::vector<double> had_ = std::vector<double>(problems_.size());  // of the budget, each problem, the last time
  bool cancelled_ = false;
  TunedTogether out_ = {};
};

}  // namespace

TunedTogether Runtime::tune(std::span<const Problem> problems, std::span<const ProblemRange> ranges,
                            const TuneOptions& options, const std::function<void(const TuneResult&)>& finished) {
  return Together(*this, problems, ranges, options, finished).run();
}

}  // namespace xpuruntime
