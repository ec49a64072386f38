#include <algorithm>
#include <cmath>

#include "cli/commands.h"
#include "cli/model_commands.h"
#include "cli/table.h"
#include "core/duration.h"
#include "core/json_text.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime::cli {
namespace {

struct BenchRequest {
  std::string problem = {};
  PolicyOptions policy = {};
  std::string budget = "5s";
  std::uint64_t seed = 1;
  StoreOption store = {};
  ModelOptions model = {};
};

std::string time_text(std::optional<double> us) {
  if (!us) return "-";
  return *us < 1000 ? figure("%.2f us", *us) : *us < 1e6 ? figure("%.3f ms", *us / 1e3) : figure("%.3f s", *us / 1e6);
}

std::string number_text(std::optional<double> value) { return value ? figure("%.2g", *value) : "-"; }

std::optional<double> best_us(const TuneResult& result) {
  std::optional<double> best;
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.time_us && (!best || *candidate.time_us < *best)) best = candidate.time_us;
  }
  return best;
}

std::optional<double> to_best(const TuneResult& result, const TunedCandidate& candidate) {
  const std::optional<double> best = best_us(result);
  if (!candidate.time_us || !best || *best <= 0) return std::nullopt;
  return *candidate.time_us / *best;
}

/// What became of it, in words: who won, who would run by default, and why the others did not.
std::string note_on(const TuneResult& result, const TunedCandidate& candidate) {
  std::string note(to_string(candidate.outcome));
  if (&candidate == result.default_row()) note += ", the default";
  return candidate.reason.empty() ? note : note + ": " + candidate.reason;
}

std::vector<std::string> row_of(const TuneResult& result, const TunedCandidate& candidate) {
  const std::optional<double> relative = to_best(result, candidate);
  const std::string bytes = candidate.workspace_bytes ? std::to_string(*candidate.workspace_bytes) : "-";
  return {candidate.kernel,
          time_text(candidate.time_us),
          candidate.noise_us ? "+-" + time_text(candidate.noise_us) : "-",
          relative ? figure("%.2f", *relative) : "-",
          bytes,
          number_text(candidate.error),
          number_text(candidate.tolerance),
          candidate.plan.empty() ? "-" : candidate.plan,
          note_on(result, candidate)};
}

/// The measured ones first, fastest first; the others as the table has them.
std::vector<const TunedCandidate*> in_order(const TuneResult& result) {
  std::vector<const TunedCandidate*> rows;
  for (const TunedCandidate& candidate : result.candidates) rows.push_back(&candidate);
  std::stable_sort(rows.begin(), rows.end(), [](const TunedCandidate* a, const TunedCandidate* b) {
    return a->time_us.value_or(INFINITY) < b->time_us.value_or(INFINITY);
  });
  return rows;
}

std::string as_text(const TuneResult& result, const Painter& paint) {
  std::string text = paint(Colour::bold, to_string(result.problem)) + "\n";
  Table table({"kernel", "time", "noise", "to best", "workspace", "error", "tolerance", "plan", "outcome"});
  for (const TunedCandidate* candidate : in_order(result)) table.add(row_of(result, *candidate));
  text += table.to_text(paint);
  if (result.chosen.empty()) return text + paint(Colour::red, result.because) + "\n";
  text += paint(Colour::green, "-> " + result.chosen + ": " + result.because) + "\n";
  return text + "measured for " + duration_text(result.measuring_s) + ", " + duration_text(result.spent_s) +
         " in all\n";
}

template <class T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json finite_or_null(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json as_json(const TuneResult& result) {
  Json candidates = Json::array();
  for (const TunedCandidate& candidate : result.candidates) {
    candidates.push_back({{"kernel", candidate.kernel},
                          {"outcome", to_string(candidate.outcome)},
                          {"reason", candidate.reason},
                          {"default", &candidate == result.default_row()},
                          {"time_us", or_null(candidate.time_us)},
                          {"noise_us", or_null(candidate.noise_us)},
                          {"to_best", or_null(to_best(result, candidate))},
                          {"runs", candidate.runs},
                          {"workspace_bytes", or_null(candidate.workspace_bytes)},
                          {"error", finite_or_null(candidate.error)},
                          {"tolerance", finite_or_null(candidate.tolerance)},
                          {"plan", candidate.plan}});
  }
  return {{"version", 1},
          {"problem", to_string(result.problem)},
          {"default", text_or_null(result.incumbent)},
          {"winner", text_or_null(result.chosen)},
          {"because", result.because},
          {"cut_short", result.cut_short},
          {"measuring_s", result.measuring_s},
          {"spent_s", result.spent_s},
          {"candidates", candidates}};
}

/// The problem as the policy would run it, its limits included, and what it would choose.
TuneTask task_of(Context& context, const BenchRequest& options) {
  const Problem problem = context.problem(options.problem);
  const KernelPolicy policy = options.policy.policy(context, problem.op);
  const Limits limits = stricter(problem.limits, policy.limits());
  const ScopedPolicy scope(context.runtime().dispatcher(), policy.merge(KernelPolicy::from_limits(limits)));
  const Decision decision = context.runtime().dispatcher().explain(problem);
  TuneTask task{decision.problem, decision.kernel, {}};
  task.problem.limits = limits;
  return task;
}

Answer bench_whole_model(Context& context, BenchRequest options) {
  options.store.use_in(context.runtime(), StoreMode::read_only);
  options.model.seed = options.seed;
  const double budget_s = parse_duration(options.budget);
  return bench_model(context, {options.problem, options.model, options.policy, {}}, budget_s);
}

Answer bench(Context& context, const CLI::App& command, const BenchRequest& options) {
  if (names_model(options.problem)) return bench_whole_model(context, options);
  refuse_options(command, {"--shape", "--input", "--execution", "--engine", "--store"}, "a problem");
  const TuneTask task = task_of(context, options);
  TuneOptions how;
  how.problem_budget_s = parse_duration(options.budget);
  how.seed = options.seed;
  const TuneResult result = Tuner(context.runtime().registry()).tune(task.problem, task.incumbent, how);
  for (const TunedCandidate& candidate : result.candidates) {
    if (candidate.outcome != TuneOutcome::quarantined) continue;
    context.note(candidate.kernel + " must not run this: " + candidate.reason);
  }
  const std::string text = context.json ? dump_json(as_json(result), 2) + "\n" : as_text(result, context.paint);
  return {text, result.chosen.empty() ? exit_no : exit_fine};
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
  CLI::App& command = add_command(
      app, context, "bench",
      "Time every kernel that can run a problem, side by side, and check its numbers; or time a model and its nodes",
      "xrt bench \"matmul(f32[256,256], f32[256,256])\" --budget 2s\n  xrt bench model.onnx --shape x=1,3,224,224");
  const auto options = std::make_shared<BenchRequest>();
  command.add_option("problem", options->problem, "Such as \"softmax(f32[128,1000]; dim=1)\", or an ONNX file")
      ->type_name("PROBLEM|MODEL")
      ->required();
  options->policy.add_file_to(command);
  command.add_option("--budget", options->budget, "Measure this long at most (default 5s)")
      ->type_name("TIME")
      ->check(flaw_of_duration);
  add_seed_to(command, options->seed);
  options->store.add_to(command);
  options->model.add_to(command);
  command.callback([&context, &command, options] {
    context.command = [&context, &command, options] { return bench(context, command, *options); };
  });
}

}  // namespace xpuruntime::cli
