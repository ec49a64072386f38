#include <algorithm>
#include <atomic>
#include <csignal>

#include "cli/commands.h"
#include "cli/duration.h"
#include "cli/problem_list.h"
#include "cli/progress.h"
#include "cli/store_option.h"
#include "cli/tuned.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/select/exact_rule.h"

namespace xpuruntime::cli {
namespace {

struct Options {
  ProblemList list = {};
  std::string policy = {};
  StoreOption store = {};
  std::string budget = "30s";
  std::string per_problem = {};
  std::string out = {};
  std::string lock = {};
};

// Set by a signal: measuring stops at the next moment that it can, and what was finished is kept.
std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int) { interrupted.store(true); }

/// Stops on Ctrl-C instead of dying, for a block.
class Interruptible {
 public:
  Interruptible() : old_(std::signal(SIGINT, interrupt)) { interrupted.store(false); }
  ~Interruptible() { std::signal(SIGINT, old_); }
  Interruptible(const Interruptible&) = delete;
  Interruptible& operator=(const Interruptible&) = delete;

 private:
  void (*old_)(int);
};

TuneOptions tune_options(const Options& options) {
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

void save_policy(const std::string& path, const KernelPolicy& base, const std::vector<TuneResult>& results) {
  KernelPolicy policy = base;
  std::vector<PolicyRule> rules;
  for (const TuneResult& result : results) {
    if (!result.chosen.empty()) rules.push_back(exact_rule(result.problem, result.chosen));
  }
  policy.rules.insert(policy.rules.begin(), rules.begin(), rules.end());
  policy.save(path);
}

void save_lock(Runtime& runtime, const std::string& path, const std::vector<TuneResult>& results) {
  runtime.refresh_measurements();
  KernelPolicy measured;
  measured.auto_strategy = Strategy::best_performance;
  const ScopedPolicy scope(runtime.dispatcher(), measured);
  std::vector<Problem> problems;
  for (const TuneResult& result : results) {
    if (!result.chosen.empty()) problems.push_back(result.problem);
  }
  record_lock(runtime, problems).save(path);
}

Answer tune(Context& context, const Options& options) {
  const TuneOptions limits = tune_options(options);
  const ScopedPolicy scope(context.runtime().dispatcher(), context.policy_of(options.policy));
  Runtime& runtime = context.runtime();
  const KernelPolicy policy = runtime.dispatcher().policy();
  const std::vector<Problem> problems = limited(options.list.problems(context), policy);
  options.store.use_in(runtime, StoreMode::read_write);

  std::vector<TuneResult> results;
  bool complete = false;
  {
    const Interruptible stop;
    ProgressShow show(problems.size());
    TuneOptions with_progress = limits;
    with_progress.progress = [&](const TuneProgress& progress) {
      show.moved(progress);
      return !interrupted.load();
    };
    complete = runtime.tune(problems, with_progress, [&](const TuneResult& result) {
      show.finished(result);
      results.push_back(result);
    });
  }
  if (!options.out.empty()) save_policy(options.out, policy, results);
  if (!options.lock.empty()) save_lock(runtime, options.lock, results);

  const TunedFiles files{options.store.file(), options.out, options.lock};
  const bool fine = complete && std::none_of(results.begin(), results.end(),
                                             [](const TuneResult& result) { return result.chosen.empty(); });
  if (!complete) {
    context.note(interrupted.load() ? "interrupted; what was finished is stored"
                                    : "the budget ran out before every problem had its turn; give more with --budget");
  }
  return {context.json ? tuned_json(problems, results, files) : tuned_text(problems, results, files, context.paint),
          fine ? exit_fine : exit_no};
}

}  // namespace

void add_tune(CLI::App& app, Context& context) {
  CLI::App& command = add_command(
      app, context, "tune",
      "Time every kernel that can run a problem, keep what was found, and write it down as a policy and a lock",
      "xrt tune \"matmul(f32[256,256], f32[256,256])\" --budget 5s --out policy.json --lock kernels.lock");
  const auto options = std::make_shared<Options>();
  command.add_option("problems", options->list.texts, "What to tune")->type_name("PROBLEM");
  options->list.add_log_to(command);
  command.add_option("--policy", options->policy, "Under the limits and the wishes of this policy file")
      ->type_name("FILE");
  options->store.add_to(command);
  command.add_option("--budget", options->budget, "Most time for all of them, such as 30s, 500ms, 2m (default 30s)")
      ->type_name("TIME")
      ->check(flaw_of_duration);
  command.add_option("--per-problem", options->per_problem, "Most time for measuring one of them (default 500ms)")
      ->type_name("TIME")
      ->check(flaw_of_duration);
  command.add_option("--out", options->out, "Write a policy with a rule for each of them")->type_name("FILE");
  command.add_option("--lock", options->lock, "Write a lock of the tuned choices")->type_name("FILE");
  command.callback([&context, options] { context.command = [&context, options] { return tune(context, *options); }; });
}

}  // namespace xpuruntime::cli
