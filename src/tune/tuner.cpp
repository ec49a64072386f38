#include "xpuruntime/tune/tuner.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include "tune/tuning.h"

namespace xpuruntime {
namespace {

void check_seconds(double seconds, const char* name) {
  if (std::isfinite(seconds) && seconds >= 0) return;
  fail(ErrorCode::invalid_argument, "tune",
       std::string(name) + " must be a finite number of seconds, 0 or more; pass such a one");
}

void check_options(const TuneOptions& options) {
  check_seconds(options.problem_budget_s, "problem_budget_s");
  check_seconds(options.probe_timeout_s, "probe_timeout_s");
  if (options.total_budget_s) check_seconds(*options.total_budget_s, "total_budget_s");
  if (!(options.min_gain >= 0 && options.min_gain < 1)) {
    fail(ErrorCode::invalid_argument, "tune", "min_gain must be 0 or more and below 1; 0.02 is the default");
  }
}

/// Making tensors cannot be interrupted, so it must not begin where no time is left for it.
TuneResult too_large_for_the_rest(const TuneTask& task) {
  TuneResult result;
  result.problem = task.problem;
  result.incumbent = task.incumbent;
  result.cut_short = true;
  result.cut_by = "total_budget_s";
  result.because = "not measured: making its tensors would take longer than is left of the budget; give more";
  return result;
}

}  // namespace

std::string_view to_string(TuneOutcome outcome) {
  switch (outcome) {
    case TuneOutcome::won:
      return "won";
    case TuneOutcome::lost:
      return "lost";
    case TuneOutcome::refused:
      return "refused";
    case TuneOutcome::quarantined:
      return "quarantined";
  }
  return "lost";
}

const TunedCandidate* TuneResult::default_row() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [&](const TunedCandidate& candidate) {
    return candidate.kernel == incumbent && candidate.variant.empty();
  });
  return found == candidates.end() ? nullptr : &*found;
}

const TunedCandidate* TuneResult::chosen_row() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(), [](const TunedCandidate& candidate) {
    return candidate.outcome == TuneOutcome::won;
  });
  return found == candidates.end() ? nullptr : &*found;
}

bool TuneResult::measured() const {
  const TunedCandidate* const row = chosen_row();
  return row != nullptr && row->time_us.has_value();
}

TuneRecord TuneResult::record(std::int64_t now) const {
  TuneRecord record;
  const std::string text = to_string(problem);
  for (const TunedCandidate& candidate : candidates) {
    if (candidate.outcome == TuneOutcome::quarantined && !candidate.known_bad) {
      record.quarantine.push_back(
          {text, candidate.kernel, candidate.reason, now, candidate.kernel_version, candidate.variant});
    }
    if (cancelled || chosen.empty() || !candidate.time_us) continue;
    // One run says nothing about its noise: it may be off by as much as itself.
    record.measurements.push_back({text, candidate.kernel, candidate.plan, *candidate.time_us,
                                   candidate.noise_us.value_or(*candidate.time_us), candidate.runs,
                                   candidate.workspace_bytes.value_or(0), candidate.error.value_or(0), now,
                                   candidate.kernel_version});
    if (candidate.outcome == TuneOutcome::won) {
      record.choices.push_back(
          {text, chosen, candidate.plan, incumbent, because, cut_short, now, candidate.kernel_version});
    }
  }
  return record;
}

Tuner::Tuner(KernelRegistry& registry, Clock clock)
    : registry_(registry), clock_(clock ? std::move(clock) : Clock(steady_us)) {}

TuneResult Tuner::tune(const Problem& problem, std::string_view incumbent, const TuneOptions& options,
                       const std::vector<QuarantineEntry>& quarantined) {
  check_options(options);
  const TuneProgress before;
  return Tuning(registry_, checked(problem), incumbent, options, clock_, before).run(quarantined);
}

bool Tuner::tune_all(const std::vector<TuneTask>& tasks, const TuneOptions& options,
                     const std::function<void(const TuneResult&)>& finished) {
  check_options(options);
  Stopwatch watch(clock_);
  const double total = options.total_budget_s.value_or(INFINITY);
  double ends = total;
  bool over = false;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const double spent = watch.elapsed_us() / 1e6;
    const auto left = static_cast<double>(tasks.size() - i);
    TuneOptions share = options;
    // What the caller's function throws is the caller's: it must not pass for a
    // failure of the problem.
    std::exception_ptr thrown;
    if (options.progress) {
      share.progress = [&](const TuneProgress& progress) {
        try {
          return options.progress(progress);
        } catch (...) {
          thrown = std::current_exception();
          return false;
        }
      };
    }
    // One that took longer than its share must not leave the others without any: they get their shortest race, for as
    // long again.
    if (!over && spent >= total) over = true, ends = spent + total;
    if (spent >= ends) return false;
    share.problem_budget_s = std::min(options.problem_budget_s, over ? 0 : (total - spent) / left);
    if (options.total_budget_s) share.total_budget_s = ends - spent;
    TuneProgress before;
    before.problem_index = i;
    before.problem_count = tasks.size();
    before.spent_s = spent;
    before.remaining_s = (left - 1) * share.problem_budget_s;
    TuneResult result;
    try {
      const TuneTask& task = tasks[i];
      const Problem problem = checked(task.problem);
      if (seconds_to_make(problem) > ends - spent && flaw_of_memory(registry_.devices(), problem, false).empty()) {
        result = too_large_for_the_rest(task);
      } else {
        result = Tuning(registry_, problem, task.incumbent, share, clock_, before).run(task.quarantined);
      }
    } catch (const Error& error) {
      if (error.code() == ErrorCode::device_lost) throw;
      result.problem = tasks[i].problem;
      result.incumbent = tasks[i].incumbent;
      result.because = error.what();
    }
    if (thrown) std::rethrow_exception(thrown);
    if (result.cut_short && share.problem_budget_s < options.problem_budget_s) result.cut_by = "total_budget_s";
    if (finished) finished(result);
    if (result.cancelled) return false;
  }
  return true;
}

}  // namespace xpuruntime
