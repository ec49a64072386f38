#include "cli/tuned.h"

#include <cmath>

#include "cli/in_force.h"
#include "cli/table.h"
#include "cli/tune_ranges.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

std::string time_of(const TunedCandidate* row) {
  if (row == nullptr || !row->time_us) return "-";
  return figure(*row->time_us < 10 ? "%#.3g us" : "%.1f us", *row->time_us);
}

std::string note_of(const TuneResult& result, const Decision* decision, const std::string& problem_budget) {
  std::string note;
  const auto add = [&](const std::string& text) { note += (note.empty() ? "" : "; ") + text; };
  if (decision != nullptr && decision->kernel != result.chosen) {
    add(decision->kernel + " still runs: " + decision->because);
  }
  std::string because = result.because;
  const std::string total = "total_budget_s";  // as it is called in code
  const std::size_t named = because.find(total);
  if (named != std::string::npos) because.replace(named, total.size(), "--budget");
  if (!result.measured()) add(because);
  if (result.cut_short && named == std::string::npos) {
    add("cut short by " + (result.cut_by == total ? "--budget" : problem_budget));
  }
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
          {"gain", result.measured() ? Json(result.gain) : Json(nullptr)},
          {"cut_short", result.cut_short},
          {"cut_by", name(result.cut_by)},
          {"not_stored", name(result.not_stored)},
          {"spent_s", result.spent_s},
          {"candidates", candidates}};
}

const Decision* decision_of(const Tuned& tuned, std::size_t problem) {
  return problem < tuned.decisions.size() ? &tuned.decisions[problem] : nullptr;
}

/// What is needed beside the settings; empty: nothing.
std::string what_else(const std::vector<std::string>& other_limits) {
  std::string text;
  for (const std::string& limits : other_limits) text += (text.empty() ? "" : " or ") + limits;
  return text.empty() ? text : "; for problems with " + text + " the program must also set these limits";
}

/// Without files: how what is in the store comes into force.
std::string how_to_use_store(const Tuned& tuned) {
  const bool ranges = tuned.ranges_asked > 0;
  return std::string("in force under a policy with \"auto_strategy\": \"best_performance\"") +
         (ranges ? ", for the sizes that were measured" : "") +
         (!tuned.complete ? ""
          : ranges        ? "; --out FILE writes rules for all"
                          : "; --out FILE writes one with these choices") +
         what_else(tuned.files.other_limits) + "\n";
}

/// What was written, each with the way to put it in force.
std::string how_to_use(const Tuned& tuned, bool any_choice_stored) {
  const TunedFiles& files = tuned.files;
  if (files.policy.empty() && files.lock.empty()) return any_choice_stored ? how_to_use_store(tuned) : "";
  const std::string end = what_else(files.other_limits) + "\n";
  return (files.policy.empty() ? "" : policy_in_force(files.policy) + end) +
         (files.lock.empty() ? "" : lock_in_force(files.lock, files.lock_policy) + end);
}

/// What became of the problems and ranges.
struct Counts {
  explicit Counts(const Tuned& tuned) {
    for (const TuneResult& result : tuned.results) {
      spent_s += result.spent_s;
      problems += result.measured() ? 1 : 0;
      add_stored(result);
    }
    for (const RangeResult& range : tuned.ranges) {
      spent_s += range.spent_s;
      if (range.covered > 0) ++(range.finished() ? ranges : ranges_in_part);
      if (range.covered == 0 && range.complete && range.named_by_policy > 0) ++ranges_of_policy;
      for (const TuneResult& result : range.measured) add_stored(result);
    }
  }

  void add_stored(const TuneResult& result) {
    if (!result.not_stored.empty()) return;
    const TuneRecord record = result.record(0);
    stored = stored || !(record == TuneRecord{});
    choice_stored = choice_stored || !record.choices.empty();
  }

  double spent_s = 0;
  std::size_t problems = 0;          // with a choice that was timed
  std::size_t ranges = 0;            // with a choice for all sizes that are not left to the policy
  std::size_t ranges_in_part = 0;    // with a choice for some
  std::size_t ranges_of_policy = 0;  // left to the policy: it names the kernels of all sizes
  bool stored = false;               // anything new
  bool choice_stored = false;        // not only kernels that must not run
};

std::string summary(const Tuned& tuned) {
  const Counts counts(tuned);
  const auto of = [](std::size_t done, std::size_t all, const char* what) {
    return std::to_string(done) + " of " + std::to_string(all) + what;
  };
  const std::string both = !tuned.problems.empty() && tuned.ranges_asked > 0 ? " and " : "";
  std::string aside;
  const auto add = [&](std::size_t number, const char* what) {
    if (number > 0) aside += (aside.empty() ? "" : ", ") + std::to_string(number) + what;
  };
  add(tuned.problems.size() - counts.problems, " left untuned");
  add(counts.ranges_in_part, " in part");
  add(counts.ranges_of_policy, " decided by the policy already");
  return (tuned.problems.empty() ? "" : of(counts.problems, tuned.problems.size(), " problems")) + both +
         (tuned.ranges_asked == 0 ? "" : of(counts.ranges, tuned.ranges_asked, " ranges")) + " tuned" +
         (aside.empty() ? "" : " (" + aside + ")") + " in " + figure("%.1f s", counts.spent_s) +
         (counts.stored ? ", kept in " + printable(tuned.files.store) : "; nothing was stored") + "\n" +
         how_to_use(tuned, counts.choice_stored);
}

}  // namespace

bool stored_anything(const Tuned& tuned) { return Counts(tuned).stored; }

std::string tuned_text(const Tuned& tuned, const Painter& paint) {
  Table table({"problem", "default", "time", "tuned", "time", "gain", "note"});
  for (std::size_t i = 0; i < tuned.results.size(); ++i) {
    const TuneResult& result = tuned.results[i];
    table.add({to_string(result.problem), result.incumbent.empty() ? "-" : result.incumbent,
               time_of(result.default_row()), result.chosen.empty() ? "-" : result.chosen, time_of(result.chosen_row()),
               result.gain == 1 ? "" : figure("%.2fx", result.gain),
               note_of(result, decision_of(tuned, i), tuned.problem_budget)});
  }
  for (std::size_t i = tuned.results.size(); i < tuned.problems.size(); ++i) {
    table.add({to_string(tuned.problems[i]), "-", "-", "-", "-", "", "not tuned"});
  }
  return (tuned.problems.empty() ? "" : table.to_text(paint) + "\n") + ranges_text(tuned.ranges, paint) +
         summary(tuned);
}

std::string tuned_json(const Tuned& tuned) {
  Json list = Json::array();
  for (std::size_t i = 0; i < tuned.results.size(); ++i) {
    list.push_back(result_json(tuned.results[i], decision_of(tuned, i)));
  }
  const Json document = {{"version", 1},
                         {"problems", tuned.problems.size()},
                         {"results", list},
                         {"ranges", ranges_json(tuned.ranges)},
                         {"store", tuned.files.store},
                         {"policy", name(tuned.files.policy)},
                         {"lock", name(tuned.files.lock)}};
  return dump_json(document, 2) + "\n";
}

}  // namespace xpuruntime::cli
