#include <algorithm>
#include <atomic>
#include <csignal>

#include "cli/commands.h"
#include "cli/in_force.h"
#include "cli/model_engines.h"
#include "cli/problem_list.h"
#include "cli/progress.h"
#include "cli/store_option.h"
#include "cli/tune_ranges.h"
#include "cli/tuned.h"
#include "core/duration.h"
#include "core/printable.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/select/exact_rule.h"
#include "xpuruntime/select/range_rule.h"

namespace xpuruntime::cli {
namespace {

struct TuneRequest {
  ProblemList list = {};
  std::string policy = {};
  StoreOption store = {};
  std::string budget = "30s";
  std::string per_problem = {};
  std::string out = {};
  std::string lock = {};
  bool ranges = false;
};

// Set by a signal: measuring stops at the next moment that it can, and what was finished is kept.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int) { interrupted.store(true); }

/// Stops on Ctrl-C instead of dying, for a block. The second one ends the process, as a call that hangs never stops.
class Interruptible {
 public:
  Interruptible() {
    interrupted.store(false);
    sigaction(SIGINT, nullptr, &old_);
    if (old_.sa_handler == SIG_IGN) return;  // as shells start background jobs: it is not for them
    struct sigaction action = {};
    action.sa_handler = interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, nullptr);
  }
  ~Interruptible() { sigaction(SIGINT, &old_, nullptr); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  struct sigaction old_ = {};
};

TuneOptions tune_options(const TuneRequest& options) {
  TuneOptions tune;
  tune.total_budget_s = parse_duration(options.budget);
  if (!options.per_problem.empty()) tune.problem_budget_s = parse_duration(options.per_problem);
  return tune;
}

/// The problems under the limits of the policy: those are part of what is measured.
std::vector<Problem> limited(std::vector<Problem> problems, const KernelPolicy& policy) {
  for (Problem& problem : problems) problem.limits = stricter(problem.limits, policy.limits());
  return problems;
}

/// The policy under which what was measured counts. One that asks for the least memory keeps asking for it.
KernelPolicy measured_policy(KernelPolicy policy) {
  if (policy.auto_strategy != Strategy::lowest_memory) policy.auto_strategy = Strategy::best_performance;
  return policy;
}

/// What runs each problem now.
std::vector<Decision> decide_all(Dispatcher& dispatcher, const std::vector<Problem>& problems) {
  std::vector<Decision> decisions;
  for (const Problem& problem : problems) {
    const ScopedPolicy limits(dispatcher, KernelPolicy::from_limits(problem.limits));
    decisions.push_back(dispatcher.explain(problem));
  }
  return decisions;
}

/// The problems, and one of each range: all of a range have the same limits.
std::vector<Problem> one_of_each(std::vector<Problem> problems, const std::vector<ProblemRange>& ranges) {
  for (const ProblemRange& range : ranges) problems.push_back(range.least());
  return problems;
}

/// The policy with the limits that all problems have: under others, a call is another problem than any of them. Where
/// it has such a limit or rules, those are for calls under its own.
KernelPolicy with_shared_limits(KernelPolicy policy, const std::vector<Problem>& problems) {
  if (!policy.rules.empty() || problems.empty()) return policy;
  const Limits& first = problems.front().limits;
  const auto shared = [&](auto limit) {
    return std::all_of(problems.begin(), problems.end(),
                       [&](const Problem& problem) { return problem.limits.*limit == first.*limit; });
  };
  if (!policy.threads && shared(&Limits::threads)) policy.threads = first.threads;
  if (!policy.workspace_limit_bytes && shared(&Limits::workspace_bytes)) {
    policy.workspace_limit_bytes = first.workspace_bytes;
  }
  if (!policy.deterministic && first.deterministic && shared(&Limits::deterministic)) policy.deterministic = true;
  return policy;
}

/// The limits of problems that are not these, each once, as they end a problem's text.
std::vector<std::string> other_limits(const std::vector<Problem>& problems, const Limits& set) {
  std::vector<std::string> others;
  for (const Problem& problem : problems) {
    if (problem.limits == set) continue;
    const std::string text = to_string(problem);
    const std::string limits = text.substr(text.find(' ', text.rfind(" @") + 1) + 1);
    if (std::find(others.begin(), others.end(), limits) == others.end()) others.push_back(limits);
  }
  return others;
}

/// Of a kernel that has several plans the one that was decided for; else empty.
std::string plan_to_name(Runtime& runtime, const Decision& decision) {
  const Problem& problem = decision.problem;
  const DeviceManager& devices = runtime.devices();
  const PrepareContext context{problem.device, devices.profile(problem.device), devices.driver(problem.device)};
  for (const auto& kernel : runtime.registry().kernels(problem.op, problem.device.type)) {
    if (kernel->name() != decision.kernel || !decision.copies.empty()) continue;
    const DeviceGuard guard(problem.device);
    return kernel->variants(problem, context).empty() ? "" : decision.plan;
  }
  return {};
}

void save_policy(Runtime& runtime, const std::string& path, const KernelPolicy& base,
                 const std::vector<Decision>& decisions, const std::vector<RangeResult>& ranges) {
  std::vector<PolicyRule> rules;
  for (const Decision& decision : decisions) {
    // What the policy itself names needs no rule, and none would be asked.
    if (decision.level != Level::strategy) continue;
    rules.push_back(exact_rule(decision.problem, decision.kernel, plan_to_name(runtime, decision)));
  }
  KernelPolicy policy = with_exact_rules(base, std::move(rules));
  for (const RangeResult& result : ranges) policy = with_range_rules(policy, result.range, range_rules(result));
  policy.save(path);
}

/// Under the policy in force, with the rules of the ranges.
void save_lock(Runtime& runtime, const std::string& path, const std::vector<Problem>& problems,
               const std::vector<ProblemRange>& ranges, const std::vector<RangeResult>& tuned,
               const KernelLock& engines) {
  KernelLock lock = record_lock(runtime, problems);
  lock.add(engines);
  KernelPolicy policy = runtime.dispatcher().policy();
  for (const RangeResult& result : tuned) policy = with_range_rules(policy, result.range, range_rules(result));
  const ScopedPolicy rules(runtime.dispatcher(), policy);
  record_ranges(lock, runtime, ranges);
  lock.save(path);
}

Tuned tune_all(Runtime& runtime, const std::vector<Problem>& problems, const std::vector<ProblemRange>& ranges,
               TuneOptions options) {
  const Interruptible stop;
  std::size_t sizes = problems.size();
  for (const ProblemRange& range : ranges) sizes += range.count();
  ProgressShow show(sizes);
  options.progress = [&](const TuneProgress& progress) {
    show.moved(progress);
    return !interrupted.load();
  };
  const TunedTogether found =
      runtime.tune(problems, ranges, options, [&](const TuneResult& result) { show.finished(result); });
  Tuned tuned{problems, ranges.size(), found.results, found.ranges, !found.cancelled};
  tuned.complete = tuned.complete && tuned.results.size() == problems.size();
  for (const TuneResult& result : tuned.results) tuned.complete = tuned.complete && result.measured();
  tuned.complete = tuned.complete && tuned.ranges.size() == ranges.size();
  for (const RangeResult& result : tuned.ranges) {
    tuned.complete = tuned.complete && result.complete && result.covered + result.named_by_policy > 0;
  }
  return tuned;
}

/// Whatever the user must hear beside the answer; false where something is not as it should be.
bool tell(const Context& context, const Tuned& tuned, const TuneRequest& options) {
  std::vector<TuneResult> measured = tuned.results;
  for (const RangeResult& range : tuned.ranges) {
    measured.insert(measured.end(), range.measured.begin(), range.measured.end());
  }
  for (const TuneResult& result : measured) {
    if (result.not_stored.empty() || !result.measured()) continue;
    context.note("what was found was not stored: " + result.not_stored);
    return false;
  }
  const auto finished = [](const RangeResult& range) { return range.finished(); };
  const bool all = std::all_of(tuned.ranges.begin(), tuned.ranges.end(), finished);
  if (tuned.complete && !all) context.note("some sizes stay with the default; give more with --budget");
  if (tuned.complete) return all;
  const bool files = !options.out.empty() || !options.lock.empty();
  const std::string unwritten = files ? "; no policy and no lock were written, as problems are missing" : "";
  context.note((interrupted.load() ? "interrupted; what was finished is stored"
                                   : "not every problem could be tuned; see the notes, or give more with --budget") +
               unwritten);
  return false;
}

/// Whether `write` wrote its file. Where the disk is full, or a size can run nowhere, the answer still shows what was
/// measured.
bool wrote(const Context& context, const Tuned& tuned, const std::string& what, const std::function<void()>& write) {
  try {
    write();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::not_supported && error.code() != ErrorCode::io_error) throw;
    context.note("no " + what + " was written: " + error.what() + ". What was measured is " +
                 (stored_anything(tuned) ? "kept in " + printable(tuned.files.store) : "not stored either"));
    return false;
  }
}

/// A model and the engines that run it.
struct TimedModel {
  std::string path = {};
  EngineTimes times = {};
};

/// Of each model that is tuned, with what was tuned. Their times are stored too.
std::vector<TimedModel> time_models(Context& context, const TuneRequest& options) {
  std::vector<TimedModel> timed;
  for (const std::string& text : options.list.texts) {
    if (!names_model(text) || interrupted.load()) continue;
    const double budget_s = std::min(parse_duration(options.budget), 2.0);
    timed.push_back({text, time_engines(context, text, options.list.model, context.runtime().store(), budget_s)});
    if (!timed.back().times.not_stored.empty()) {
      context.note("which engine is fastest was not stored: " + timed.back().times.not_stored);
    }
  }
  return timed;
}

/// Those that the models have from now on.
KernelLock engines_of(Context& context, const std::vector<TimedModel>& models, const ModelOptions& options) {
  KernelLock lock;
  for (const TimedModel& model : models) options.open(context, load_onnx(model.path)).lock_engine(lock);
  return lock;
}

std::string answer_text(const Context& context, const Tuned& tuned, const std::vector<TimedModel>& models) {
  if (context.json && models.empty()) return tuned_json(tuned);
  if (context.json) {
    Json json = parse_known_json(tuned_json(tuned));
    json["models"] = Json::array();
    for (const TimedModel& model : models) {
      json["models"].push_back({{"model", model.path}, {"engines", engines_json(model.times)}});
    }
    return dump_json(json, 2) + "\n";
  }
  std::string text = tuned.problems.empty() && tuned.ranges_asked == 0 ? "" : tuned_text(tuned, context.paint);
  for (const TimedModel& model : models) {
    text += (text.empty() ? "" : "\n") + context.paint(Colour::bold, printable(model.path)) + "\n" +
            engines_text(model.times, context.paint) + fastest_text(model.times, context.paint);
  }
  return text;
}

Answer tune(Context& context, const TuneRequest& options) {
  if (options.ranges && options.list.log.empty()) {
    fail(ErrorCode::invalid_argument, "xrt",
         "--ranges is for the problems of a log; name one with --from-log, or write the range: \"relu(f32[n]) where "
         "n=1..512\"");
  }
  for (const std::string& path : {options.out, options.lock}) {
    if (!path.empty()) options.store.check_output(path);
  }
  const TuneOptions limits = tune_options(options);
  Runtime& runtime = context.runtime();
  const ScopedPolicy scope(runtime.dispatcher(), context.policy_of(options.policy));
  const KernelPolicy policy = runtime.dispatcher().policy();
  auto [problems, ranges, models_of_others] = options.list.read(context);
  const bool any_calls = !problems.empty() || !ranges.empty();
  if (!any_calls && !options.out.empty()) {
    fail(ErrorCode::not_supported, "xrt",
         "--out: there is no call of ours to write a rule for; " +
             (models_of_others.empty() ? "native calls no kernel" : models_of_others.front()) +
             "; leave it out, or name the engine with --lock");
  }
  for (const std::string& model : models_of_others) context.note("only engines are timed for " + model);
  problems = limited(std::move(problems), policy);
  if (!options.list.log.empty()) propose_from_log(context, options.ranges, problems, ranges);
  for (ProblemRange& range : ranges) {
    range = range.with_limits(stricter(range.least().limits, policy.limits()));
  }
  if (!options.lock.empty()) check_recordable(runtime, ranges);
  options.store.use_in(runtime, StoreMode::read_write);
  Tuned tuned{.complete = true};
  if (any_calls) tuned = tune_all(runtime, problems, ranges, limits);
  tuned.problem_budget += " " + (options.per_problem.empty() ? "500ms" : options.per_problem);
  tuned.files.store = options.store.file();
  const std::vector<Problem> each = one_of_each(problems, ranges);
  std::vector<TimedModel> models;
  KernelPolicy named = policy;  // that what is printed puts in force
  if (tuned.complete) {
    runtime.refresh_measurements();
    const ScopedPolicy measured(runtime.dispatcher(), measured_policy(policy));
    tuned.decisions = decide_all(runtime.dispatcher(), problems);
    models = time_models(context, options);
    const KernelPolicy base = with_shared_limits(policy, each);
    const auto save = [&] { save_policy(runtime, options.out, base, tuned.decisions, tuned.ranges); };
    if (!options.out.empty() && wrote(context, tuned, "policy", save)) {
      tuned.files.policy = options.out;
      named = base;
    }
    const auto record = [&] {
      save_lock(runtime, options.lock, problems, ranges, tuned.ranges, engines_of(context, models, options.list.model));
    };
    if (!options.lock.empty() && wrote(context, tuned, "lock", record)) {
      tuned.files.lock = options.lock;
      tuned.files.lock_policy = policy_of_lock(named, tuned.files.policy.empty() ? options.policy : options.out);
    }
  }
  tuned.files.other_limits = other_limits(each, named.limits());
  const bool all_written = tuned.files.policy == options.out && tuned.files.lock == options.lock;
  const bool fine = tell(context, tuned, options) && all_written;
  return {answer_text(context, tuned, models), fine ? exit_fine : exit_no};
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
  CLI::App& command = add_command(
      app, context, "tune",
      "Time every kernel that can run a problem, keep what was found, and write it down as a policy and a lock",
      "xrt tune \"matmul(f32[256,256], f32[256,256])\" --budget 5s --out policy.json --lock kernels.lock");
  const auto options = std::make_shared<TuneRequest>();
  command
      .add_option("problems", options->list.texts,
                  "What to tune; extents may be names with ranges: where m=1..512; a model means all its calls")
      ->type_name("PROBLEM|MODEL");
  options->list.add_log_to(command);
  options->list.model.add_to(command);
  command.add_flag("--ranges", options->ranges,
                   "Tune problems of the log that differ in one size alone as ranges of that size");
  command.add_option("--policy", options->policy, "Under the limits and the preferences of this policy file")
      ->type_name("FILE");
  options->store.add_to(command);
  command.add_option("--budget", options->budget, "Most time for all of them, such as 30s, 500ms, 2m (default 30s)")
      ->type_name("TIME")
      ->check(flaw_of_duration);
  command.add_option("--per-problem", options->per_problem, "Most time for measuring one of them (default 500ms)")
      ->type_name("TIME")
      ->check(flaw_of_duration);
  add_output_to(command, context, "--out", options->out, "Write a policy with a rule for each of them", "--policy");
  add_output_to(command, context, "--lock", options->lock, "Write a lock of the tuned choices");
  command.callback([&context, options] { context.command = [&context, options] { return tune(context, *options); }; });
}

}  // namespace xpuruntime::cli
