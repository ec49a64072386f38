#include "runtime/tune_range.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "select/rule_index.h"
#include "tune/operands.h"
#include "tune/range_search.h"
#include "xpuruntime/select/kernel_selector.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "tune";

/// A tenth of the problems; of few, enough to see anything.
std::size_t points_for(std::size_t problems, std::size_t asked) {
  return asked > 0 ? asked : std::clamp<std::size_t>(problems / 10, 32, 256);
}

/// The range as kernels get it: the policy's precision and limits are the same for all sizes.
ProblemRange settled(const ProblemRange& range, const Decision& decision) {
  const ProblemRange made = range.with_dtypes_of(decision.problem).with_limits(decision.problem.limits);
  if (made.contains(decision.problem)) return made;
  fail(ErrorCode::not_supported, function,
       to_string(range) + ": the policy's precision makes " + to_string(decision.problem) +
           " of it, which is not such a range; write the range in the dtypes that are wanted, with their outputs");
}

using Decide = std::function<Decision(const Problem&)>;

/// Finds the problems that a policy, or rules registered in code, name a kernel for. What preferences and rules come to
/// is the same for all problems that the same kernels can run and the same rules match.
class NamedProblems {
 public:
  NamedProblems(const KernelPolicy& policy, const KernelRegistry& registry, const ProblemRange& settled)
      : policy_(policy),
        range_(settled),
        profile_(registry.devices().profile(settled.least().device)),
        preferred_(policy.preferences.contains(settled.least().op)) {}

  /// Why the problem of an index, which is of this class, has a kernel already; empty: it has none.
  std::string why(std::size_t index, std::uint32_t group, const std::function<Decision()>& decide) {
    std::vector<std::size_t> matches;
    if (!policy_.rules.empty()) {
      policy_.rules.index().any_match(range_.at(index), profile_, [&](std::size_t rule, const std::string& thrown) {
        if (thrown.empty()) matches.push_back(rule);
        return false;
      });
    }
    if (!preferred_ && matches.empty()) return {};
    const auto [found, first] = known_.try_emplace({group, std::move(matches)});
    if (first) found->second = reason_of(decide());
    return found->second;
  }

  static std::string reason_of(const Decision& decision) {
    if (decision.kernel.empty() || decision.level == Level::strategy) return {};
    return decision.level == Level::rule ? "rules decide them" : decision.because;
  }

 private:
  const KernelPolicy& policy_;
  const ProblemRange& range_;
  const DeviceProfile& profile_;
  const bool preferred_;
  std::map<std::pair<std::uint32_t, std::vector<std::size_t>>, std::string> known_ = {};  // by class and rules
};

/// Leaves those alone that have a kernel already.
void leave_out_named(const KernelPolicy& policy, KernelRegistry& registry, const ProblemRange& range,
                     const Decide& decide, std::vector<std::uint32_t>& classes, RangeResult& out) {
  NamedProblems named(policy, registry, out.range);
  const bool coded = !registry.get_or_create_selector(range.least().device)->rules(range.least().op).empty();
  std::set<std::string> reasons;
  for (std::size_t index = 0; index < classes.size(); ++index) {
    if (classes[index] == nothing_runs) continue;
    const auto decided = [&] { return decide(range.at(index)); };
    const std::string why = coded ? NamedProblems::reason_of(decided()) : named.why(index, classes[index], decided);
    if (why.empty()) continue;
    classes[index] = nothing_runs;
    ++out.named_by_policy;
    if (!reasons.insert(why).second) continue;
    out.named_because += (out.named_because.empty() ? "" : ", and ") + why;
  }
}

/// Leaves those alone whose tensors do not fit the device, or would take longer to make.
void leave_out_large(const KernelRegistry& registry, double most_s, std::vector<std::uint32_t>& classes,
                     RangeResult& out) {
  for (std::size_t index = 0; index < classes.size(); ++index) {
    if (classes[index] == nothing_runs) continue;
    const Problem problem = out.range.at(index);
    const bool fits = flaw_of_memory(registry.devices(), problem, false).empty();
    if (fits && seconds_to_make(problem) <= most_s) continue;
    classes[index] = nothing_runs;
    ++(fits ? out.undecided : out.too_large);
  }
}

/// Whether each class of sizes has a choice for some of them.
bool found_in_each(std::span<const std::uint32_t> classes, std::span<const int> choice) {
  std::set<std::uint32_t> all(classes.begin(), classes.end()), found = {nothing_runs};
  for (std::size_t i = 0; i < classes.size(); ++i) {
    if (choice[i] >= 0) found.insert(classes[i]);
  }
  all.insert(nothing_runs);
  return all == found;
}

}  // namespace

RangeTuning::RangeTuning(Dispatcher& dispatcher, MeasuredChoices& measured, const ProblemRange& range,
                         const TuneOptions& options, const std::function<void(const TuneResult&)>& finished)
    : dispatcher_(dispatcher),
      measured_(measured),
      range_(range),
      options_(options),
      finished_(finished),
      most_points_(points_for(range.count(), options.range_points)) {
  if (dispatcher.policy().auto_strategy == Strategy::lowest_memory) {
    fail(ErrorCode::invalid_argument, function,
         "the policy asks for the least memory, which is not measured; tune ranges under another strategy");
  }
  out_.range = settled(range, decide(range.least()));
  out_.problems = range.count();
}

/// Without measuring, and without a lock.
Decision RangeTuning::decide(const Problem& problem) const {
  KernelPolicy unmeasured = KernelPolicy::from_limits(range_.least().limits);
  unmeasured.auto_strategy = Strategy::first_supported;
  const ScopedLock unlocked(dispatcher_, {});
  const ScopedPolicy scope(dispatcher_, unmeasured);
  return dispatcher_.explain(problem);
}

void RangeTuning::start(std::optional<double> seconds) {
  started_ = measured_.now_s() - out_.spent_s;
  budget_s_ = seconds;
  if (budget_s_) *budget_s_ += out_.spent_s;
  RangeResult fresh;
  fresh.range = std::move(out_.range);
  fresh.problems = out_.problems;
  fresh.measured = std::move(out_.measured);
  fresh.named_by_policy = out_.named_by_policy;
  fresh.named_because = std::move(out_.named_because);
  out_ = std::move(fresh);
  // What the total budget left untimed is worth another try.
  const auto left_untimed = [](const Race& race) {
    return race.result.cut_by == "total_budget_s" && !race.result.measured();
  };
  for (auto& [index, races] : held_) std::erase_if(races, left_untimed);
  asked_.clear();
  points_ = 0;
  cancelled_ = untimed_ = false;
}

void RangeTuning::cut() {
  out_.cut_short = true;
  out_.cut_by = "total_budget_s";
}

bool RangeTuning::keep_going() {
  if (budget_s_ && spent_s() > *budget_s_) {
    cut();
    return false;
  }
  return !options_.progress || options_.progress({.problem = to_string(out_.range), .spent_s = spent_s()});
}

/// Which of them can run which sizes; false where that was stopped.
bool RangeTuning::ask_kernels() {
  if (!classes_.empty()) return true;
  classes_ = classes_of(dispatcher_.registry(), out_.range, [this] { return keep_going(); });
  if (classes_.empty()) return false;
  const auto decided = [this](const Problem& problem) { return decide(problem); };
  leave_out_named(dispatcher_.policy(), dispatcher_.registry(), range_, decided, classes_, out_);
  return true;
}

/// The classes of those sizes that fit the device and the time.
std::vector<std::uint32_t> RangeTuning::affordable_classes() {
  constexpr double most = 0.25;  // of the budget, for one of many
  most_to_make_s_ = std::max(most_to_make_s_, most * budget_s_.value_or(INFINITY));
  std::vector<std::uint32_t> classes = classes_;
  leave_out_large(dispatcher_.registry(), most_to_make_s_, classes, out_);
  if (out_.undecided > 0) cut();
  return classes;
}

TuneOptions RangeTuning::options_of_race(std::optional<double> rest_s) const {
  TuneOptions share = options_;
  share.total_budget_s = rest_s;
  if (rest_s) {
    // Most ranges need about 24; what is left then is shared by as many again.
    constexpr std::size_t usual = 24;
    const auto left = static_cast<double>(std::min(most_points_ - points_, usual - points_ % usual));
    share.problem_budget_s = std::min(options_.problem_budget_s, *rest_s / std::max(1.0, left));
  }
  if (options_.progress) {
    share.progress = [this](TuneProgress progress) {
      progress.problem_index = points_;
      progress.problem_count = most_points_;  // at most
      progress.spent_s = spent_s();
      return options_.progress(progress);
    };
  }
  return share;
}

/// False where time ran out, or it was cancelled.
bool RangeTuning::hold_race(std::size_t index) {
  std::optional<double> rest_s = budget_s_;
  if (rest_s) *rest_s -= spent_s();
  if (rest_s && *rest_s <= 0) return false;
  const TuneOptions share = options_of_race(rest_s);
  const Decision decision = decide(range_.at(index));
  TuneResult found;
  const bool done = measured_.tune_all({{decision.problem, decision.kernel, {}}}, share, [&](const TuneResult& result) {
    found = result;
    if (finished_) finished_(result);
  });
  cancelled_ = found.cancelled;
  const bool not_begun = found.cut_short && found.candidates.empty();
  if (!done || cancelled_ || not_begun) return false;
  if (found.cut_short && share.problem_budget_s < options_.problem_budget_s) found.cut_by = "total_budget_s";
  if (found.measured()) {
    ++races_;
    std::erase_if(out_.measured, [&](const TuneResult& before) { return before.problem == found.problem; });
    out_.measured.push_back(found);
  }
  held_[index].push_back({found, decision.level == Level::strategy && out_.range.contains(decision.problem)});
  return true;
}

/// What the search is told about a size: by a race of an earlier run, as long as there is one.
std::optional<TuneResult> RangeTuning::measure(std::size_t index) {
  const std::size_t turn = asked_[index]++;
  if (turn >= held_[index].size() && !hold_race(index)) return std::nullopt;
  const Race& race = held_[index][turn];
  TuneResult found = race.result;
  points_ += found.measured();
  untimed_ = untimed_ || (!found.chosen.empty() && !found.measured());
  // What others decide, or in another precision, is no choice of this range; nor is what stays untimed.
  if (!race.ours || !found.measured()) found.chosen.clear();
  if (!race.ours) found.cut_short = false;  // more time would not make it one
  return found;
}

RangeResult RangeTuning::run(std::optional<double> seconds) {
  start(seconds);
  if (!ask_kernels()) {
    out_.complete = false;
    if (out_.cut_short) out_.undecided = out_.problems;
    out_.spent_s = looking_s_ = spent_s();
    return out_;
  }
  looking_s_ = -spent_s();
  const std::vector<std::uint32_t> classes = affordable_classes();
  looking_s_ += spent_s();
  const RangeChoices choices = search_range(out_.range.names(), classes, {options_.min_gain, most_points_},
                                            [this](std::size_t index) { return measure(index); });
  for (const RangePart& part : parts_of(out_.range.names(), choices.choice)) {
    out_.parts.push_back({out_.range.with_names(part.names), choices.kernels[static_cast<std::size_t>(part.kernel)]});
    out_.covered += out_.parts.back().range.count();
  }
  out_.guessed = choices.guessed;
  out_.undecided += choices.undecided;
  if (choices.stopped && !cancelled_) cut();
  // Where time ran out, something must be known of each class of sizes.
  const bool nothing = out_.measured.empty() && out_.undecided > 0;
  out_.complete = !untimed_ && !cancelled_ && !nothing && (!choices.stopped || found_in_each(classes, choices.choice));
  out_.spent_s = spent_s();
  return out_;
}

}  // namespace xpuruntime
