#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/clock.h"
#include "runtime/measured_choices.h"
#include "select/rule_index.h"
#include "tune/operands.h"
#include "tune/range_search.h"
#include "xpuruntime/runtime/runtime.h"
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

/// Leaves those alone whose tensors do not fit the device, or would take too much of the budget to make.
void leave_out_large(const KernelRegistry& registry, const TuneOptions& options, std::vector<std::uint32_t>& classes,
                     RangeResult& out) {
  constexpr double most = 0.25;  // of the budget, for one of many
  const double most_s = most * options.total_budget_s.value_or(INFINITY);
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

RangeResult Runtime::tune(const ProblemRange& range, const TuneOptions& options,
                          const std::function<void(const TuneResult&)>& finished) {
  const KernelPolicy policy = dispatcher_->policy();
  if (policy.auto_strategy == Strategy::lowest_memory) {
    fail(ErrorCode::invalid_argument, function,
         "the policy asks for the least memory, which is not measured; tune ranges under another strategy");
  }
  KernelPolicy unmeasured = KernelPolicy::from_limits(range.least().limits);
  unmeasured.auto_strategy = Strategy::first_supported;
  const auto decide = [&](const Problem& problem) {
    const ScopedLock unlocked(*dispatcher_, {});
    const ScopedPolicy scope(*dispatcher_, unmeasured);
    return dispatcher_->explain(problem);
  };
  const double started = seconds_now();
  RangeResult out;
  out.range = settled(range, decide(range.least()));
  out.problems = range.count();
  const auto cut = [&] {
    out.cut_short = true;
    out.cut_by = "total_budget_s";
  };
  const auto keep_going = [&] {
    const double spent = seconds_now() - started;
    if (options.total_budget_s && spent > *options.total_budget_s) {
      cut();
      return false;
    }
    return !options.progress || options.progress({.problem = to_string(out.range), .spent_s = spent});
  };
  std::vector<std::uint32_t> classes = classes_of(*registry_, out.range, keep_going);
  if (classes.empty()) {
    out.complete = false;
    if (out.cut_short) out.undecided = out.problems;
    out.spent_s = seconds_now() - started;
    return out;
  }
  leave_out_named(policy, *registry_, range, decide, classes, out);
  leave_out_large(*registry_, options, classes, out);
  if (out.undecided > 0) cut();
  RangeSearchOptions search{options.min_gain, points_for(out.problems, options.range_points)};

  bool cancelled = false, untimed = false;
  std::size_t races = 0;  // some sizes have two
  const auto measure = [&](std::size_t index) -> std::optional<TuneResult> {
    TuneOptions share = options;
    if (options.total_budget_s) {
      // Most ranges need about 24; what is left then is shared by as many again.
      constexpr std::size_t usual = 24;
      const auto left = static_cast<double>(std::min(search.most_points - races, usual - races % usual));
      const double rest = *options.total_budget_s - (seconds_now() - started);
      if (rest <= 0) return std::nullopt;
      share.total_budget_s = rest;
      share.problem_budget_s = std::min(options.problem_budget_s, rest / std::max(1.0, left));
    }
    if (options.progress) {
      share.progress = [&](TuneProgress progress) {
        progress.problem_index = races;
        progress.problem_count = search.most_points;  // at most
        progress.spent_s = seconds_now() - started;
        return options.progress(progress);
      };
    }
    const Decision decision = decide(range.at(index));
    TuneResult found;
    const bool done =
        measured_->tune_all({{decision.problem, decision.kernel, {}}}, share, [&](const TuneResult& result) {
          found = result;
          if (finished) finished(result);
        });
    cancelled = found.cancelled;
    const bool not_begun = found.cut_short && found.candidates.empty();
    if (!done || cancelled || not_begun) return std::nullopt;
    if (found.cut_short && share.problem_budget_s < options.problem_budget_s) found.cut_by = "total_budget_s";
    untimed = untimed || (!found.chosen.empty() && !found.measured());
    if (found.measured()) {
      ++races;
      std::erase_if(out.measured, [&](const TuneResult& before) { return before.problem == found.problem; });
      out.measured.push_back(found);
    }
    // What others decide, or in another precision, is no choice of this range; nor is what stays untimed.
    const bool ours = decision.level == Level::strategy && out.range.contains(decision.problem);
    if (!ours || !found.measured()) found.chosen.clear();
    if (!ours) found.cut_short = false;  // more time would not make it one
    return found;
  };
  const RangeChoices choices = search_range(out.range.names(), classes, search, measure);
  for (const RangePart& part : parts_of(out.range.names(), choices.choice)) {
    out.parts.push_back({out.range.with_names(part.names), choices.kernels[static_cast<std::size_t>(part.kernel)]});
    out.covered += out.parts.back().range.count();
  }
  out.guessed = choices.guessed;
  out.undecided += choices.undecided;
  if (choices.stopped && !cancelled) cut();
  // Where time ran out, something must be known of each class of sizes.
  const bool nothing = out.measured.empty() && out.undecided > 0;
  out.complete = !untimed && !cancelled && !nothing && (!choices.stopped || found_in_each(classes, choices.choice));
  out.spent_s = seconds_now() - started;
  return out;
}

}  // namespace xpuruntime
