#include <algorithm>
#include <chrono>

#include "runtime/measured_choices.h"
#include "select/rule_index.h"
#include "tune/range_search.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "tune";

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

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
           " of it, which is no such range; write the range in the dtypes that are wanted, with their outputs");
}

/// Leaves those alone that rules of the policy decide; returns how many.
std::size_t leave_out_named(const KernelPolicy& policy, const DeviceProfile& profile, const ProblemRange& range,
                            std::vector<std::uint32_t>& classes) {
  std::size_t named = 0;
  if (policy.rules.empty()) return 0;
  for (std::size_t index = 0; index < classes.size(); ++index) {
    const auto any = [](std::size_t, const std::string& thrown) { return thrown.empty(); };
    if (!policy.rules.index().any_match(range.at(index), profile, any)) continue;
    classes[index] = nothing_runs;
    ++named;
  }
  return named;
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
  const ScopedPolicy scope(*dispatcher_, unmeasured);
  const double started = seconds_now();
  RangeResult out;
  out.range = settled(range, dispatcher_->explain(range.least()));
  out.problems = range.count();
  const auto keep_going = [&] {
    const double spent = seconds_now() - started;
    if (options.total_budget_s && spent > *options.total_budget_s) return false;
    return !options.progress || options.progress({.problem = to_string(out.range), .spent_s = spent});
  };
  std::vector<std::uint32_t> classes = classes_of(*registry_, out.range, keep_going);
  if (classes.empty()) {
    out.complete = false;
    out.spent_s = seconds_now() - started;
    return out;
  }
  out.named_by_policy = leave_out_named(policy, devices_->profile(range.least().device), out.range, classes);
  RangeSearchOptions search{options.min_gain, points_for(out.problems, options.range_points)};

  bool cancelled = false;
  const auto measure = [&](std::size_t index) -> std::optional<TuneResult> {
    TuneOptions share = options;
    if (options.total_budget_s) {
      // Most ranges need about 24; what is left then is shared by as many again.
      constexpr std::size_t usual = 24;
      const std::size_t done = out.measured.size();
      const auto left = static_cast<double>(std::min(search.most_points - done, usual - done % usual));
      const double rest = *options.total_budget_s - (seconds_now() - started);
      if (rest <= 0) return std::nullopt;
      share.total_budget_s = rest;
      share.problem_budget_s = std::min(options.problem_budget_s, rest / std::max(1.0, left));
    }
    if (options.progress) {
      share.progress = [&](TuneProgress progress) {
        progress.problem_index = out.measured.size();
        progress.problem_count = search.most_points;  // at most
        progress.spent_s = seconds_now() - started;
        return options.progress(progress);
      };
    }
    const Decision decision = dispatcher_->explain(range.at(index));
    TuneResult found;
    const bool done =
        measured_->tune_all({{decision.problem, decision.kernel, {}}}, share, [&](const TuneResult& result) {
          found = result;
          if (finished) finished(result);
        });
    cancelled = found.cancelled;
    if (!done || cancelled) return std::nullopt;
    out.measured.push_back(found);
    // What others decide, or in another precision, is no choice of this range.
    if (decision.level != Level::strategy || !out.range.contains(decision.problem)) found.chosen.clear();
    return found;
  };
  const RangeChoices choices = search_range(out.range.names(), classes, search, measure);
  for (const RangePart& part : parts_of(out.range.names(), choices.choice)) {
    out.parts.push_back({out.range.with_names(part.names), choices.kernels[static_cast<std::size_t>(part.kernel)]});
    out.covered += out.parts.back().range.count();
  }
  out.guessed = choices.guessed;
  // Where time ran out, the nearest ones measured stand in; a class of which none was measured has none.
  const auto runs = static_cast<std::size_t>(
      std::count_if(classes.begin(), classes.end(), [](std::uint32_t group) { return group != nothing_runs; }));
  out.complete = !choices.stopped || (!cancelled && out.covered == runs);
  out.spent_s = seconds_now() - started;
  return out;
}

}  // namespace xpuruntime
