#include "cli/tuned.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "cli/table.h"
#include "cli/tune_ranges.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

std::string figure(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string time_of(const TunedCandidate* row) {
  if (row == nullptr || !row->time_us) return "-";
  return figure(*row->time_us < 10 ? "%.2f us" : "%.1f us", *row->time_us);
}

std::string note_of(const TuneResult& result, const Decision* decision) {
  std::string note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (decision != nullptr && decision->kernel != result.chosen) {
    add(decision->kernel + " runs all the same: " + decision->because);
  }
  if (result.chosen.empty()) add(result.because);
  if (result.cut_short)
    add("cut short by " + std::string(result.cut_by == "total_budget_s" ? "--budget" : "--per-problem"));
  for (const TunedCandidate& c : result.candidates) {
    if (c.outcome == TuneOutcome::quarantined) add(c.kernel + " is quarantined: " + c.reason);
  }
  return note;
}

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json name(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json candidate_json(const TunedCandidate& c) {
  return {{"kernel", c.kernel},
          {"plan", c.plan},
          {"outcome", to_string(c.outcome)},
          {"reason", c.reason},
          {"time_us", number(c.time_us)},
          {"noise_us", number(c.noise_us)},
          {"runs", c.runs},
          {"workspace_bytes", c.workspace_bytes ? Json(*c.workspace_bytes) : Json(nullptr)},
          {"error", number(c.error)},
          {"tolerance", number(c.tolerance)}};
}

Json result_json(const TuneResult& result, const Decision* decision) {
  Json candidates = Json::array();
  for (const TunedCandidate& c : result.candidates) candidates.push_back(candidate_json(c));
  return {{"problem", to_string(result.problem)},
          {"default", result.incumbent},
          {"chosen", result.chosen.empty() ? Json(nullptr) : Json(result.chosen)},
          {"runs", decision == nullptr ? Json(nullptr) : Json(decision->kernel)},
          {"because", result.because},
          {"gain", result.gain},
          {"cut_short", result.cut_short},
          {"cut_by", name(result.cut_by)},
          {"spent_s", result.spent_s},
          {"candidates", candidates}};
}

/// What was written, each with the way to put it in force.
std::string how_to_use(const TunedFiles& files) {
  const auto in_force = [](const char* what, const char* variable, const std::string& file) {
    return std::string(what) + ": " + printable(file) + "; in force with " + variable + "=" + printable(file) + "\n";
  };
  if (files.policy.empty() && files.lock.empty()) {
    return "in force under a policy with \"auto_strategy\": \"best_performance\"; --out FILE writes one with these "
           "choices\n";
  }
  return (files.policy.empty() ? "" : in_force("policy", "XPURUNTIME_POLICY", files.policy)) +
         (files.lock.empty() ? "" : in_force("lock", "XPURUNTIME_LOCK", files.lock));
}

}  // namespace

std::string tuned_text(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const std::vector<RangeResult>& ranges, const std::vector<Decision>& decisions,
                       const TunedFiles& files, const Painter& paint) {
  Table table({"problem", "default", "time", "tuned", "time", "gain", "note"});
  double spent = 0;
  std::size_t tuned = 0;
  for (std::size_t i = 0; i < results.size(); ++i) {
    const TuneResult& result = results[i];
    spent += result.spent_s;
    tuned += result.chosen.empty() ? 0 : 1;
    table.add({to_string(result.problem), result.incumbent, time_of(result.default_row()),
               result.chosen.empty() ? "-" : result.chosen, time_of(result.chosen_row()),
               result.gain == 1 ? "" : figure("%.2fx", result.gain),
               note_of(result, i < decisions.size() ? &decisions[i] : nullptr)});
  }
  for (std::size_t i = results.size(); i < problems.size(); ++i) {
    table.add({to_string(problems[i]), "-", "-", "-", "-", "", "not tuned"});
  }
  std::size_t tuned_ranges = 0;
  for (const RangeResult& range : ranges) {
    spent += range.spent_s;
    tuned_ranges += range.parts.empty() && range.named_by_policy == 0 ? 0 : 1;
  }
  const bool complete = tuned == problems.size() && tuned_ranges == ranges.size();
  const std::string ranged =
      ranges.empty() ? "" : std::to_string(tuned_ranges) + " of " + std::to_string(ranges.size()) + " ranges";
  const std::string single = std::to_string(tuned) + " of " + std::to_string(problems.size()) + " problems";
  return (problems.empty() ? "" : table.to_text(paint) + "\n") + ranges_text(ranges, paint) +
         (problems.empty() ? ranged : single + (ranged.empty() ? "" : " and " + ranged)) + " tuned in " +
         figure("%.1f s", spent) + ", kept in " + printable(files.store) + "\n" + (complete ? how_to_use(files) : "");
}

std::string tuned_json(const std::vector<Problem>& problems, const std::vector<TuneResult>& results,
                       const std::vector<RangeResult>& ranges, const std::vector<Decision>& decisions,
                       const TunedFiles& files) {
  Json list = Json::array();
  for (std::size_t i = 0; i < results.size(); ++i) {
    list.push_back(result_json(results[i], i < decisions.size() ? &decisions[i] : nullptr));
  }
  const Json document = {{"version", 1},
                         {"problems", problems.size()},
                         {"results", list},
                         {"ranges", ranges_json(ranges)},
                         {"store", files.store},
                         {"policy", name(files.policy)},
                         {"lock", name(files.lock)}};
  return dump_json(document, 2) + "\n";
}

}  // namespace xpuruntime::cli
