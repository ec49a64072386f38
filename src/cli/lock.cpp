#include <map>
#include <set>

#include "cli/commands.h"
#include "cli/in_force.h"
#include "cli/model_lock.h"
#include "cli/problem_list.h"
#include "cli/store_option.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "runtime/decided_parts.h"
#include "select/lock_needs.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime::cli {
namespace {

struct LockRequest {
  std::string action = {};
  std::vector<std::string> words = {};  // problems, or lock files
  std::string log = {};
  std::string out = {};
  std::string policy = {};
  StoreOption store = {};
  std::uint64_t seed = 1;
  bool seed_given = false;
  bool deterministic = false;
  bool revalidate = false;
  ModelOptions model = {};
  std::string lock = {};  // that a model is verified under
};

std::string decisions_text(std::size_t count) {
  return std::to_string(count) + (count == 1 ? " decision" : " decisions");
}

std::string dumped(const Json& json) { return dump_json(json, 2) + "\n"; }

KernelPolicy policy_of(Context& context, const LockRequest& options) {
  KernelPolicy policy = context.policy_of(options.policy);
  if (options.deterministic) policy.deterministic = true;
  return policy;
}

/// One file for verify, one or two for diff.
std::vector<std::string> files_of(const LockRequest& options, std::size_t most) {
  if (options.words.empty() || options.words.size() > most) {
    fail(ErrorCode::invalid_argument, "xrt",
         "lock " + options.action + " takes " + (most == 1 ? "one lock" : "one or two locks") + ", and " +
             std::to_string(options.words.size()) + " were named; see xrt lock --help");
  }
  if (!options.log.empty()) {
    fail(ErrorCode::invalid_argument, "xrt", "--from-log goes with lock record alone; leave it out");
  }
  return options.words;
}

/// The limits of entries that calls under these would not find, as a line; empty: none. Plain `deterministic` is left
/// out: its entries mostly serve calls without it too.
std::string limits_line(const KernelLock& lock, Limits set) {
  set.deterministic = false;
  std::set<std::string> needed;
  for (const auto& [text, entry] : lock.entries()) {
    Limits limits = has_ranges(text) ? parse_problem_range(text).least().limits : parse_problem(text).limits;
    limits.deterministic = false;
    if (limits != set && limits != Limits{}) needed.insert(without_limits(text).limits);
  }
  std::string all;
  for (const std::string& limits : needed) all += (all.empty() ? "" : " or ") + limits;
  return all.empty() ? all
                     : "in force for calls with " + all +
                           ": set the same limits in the policy (XPURUNTIME_POLICY, with_policy)\n";
}

std::string locked_engines_text(const KernelLock& lock) {
  std::string text;
  for (const auto& [model, engine] : lock.engines()) text += "model " + model + ": " + text_of_choice(engine) + "\n";
  return text;
}

Json locked_engines_json(const KernelLock& lock) {
  Json list = Json::array();
  for (const auto& [model, engine] : lock.engines()) {
    list.push_back({{"model", model}, {"engine", engine.engine}, {"version", engine.version}});
  }
  return list;
}

Answer record(Context& context, const LockRequest& options) {
  Runtime& runtime = context.runtime();
  options.store.use_in(runtime, StoreMode::read_only);
  const std::string needed =
      policy_of_lock(runtime.dispatcher().policy().merge(context.policy_of(options.policy)), options.policy);
  const ScopedPolicy scope(runtime.dispatcher(), policy_of(context, options));
  KernelLock lock;
  ProblemList list{{}, options.log, options.model};
  for (const std::string& word : options.words) {
    if (names_model(word)) {
      lock.add(record_model(context, word, options.model, options.seed));
    } else {
      list.texts.push_back(word);
    }
  }
  if (lock.engines().empty() || !list.texts.empty() || !list.log.empty()) {
    if (!lock.engines().empty()) list.model = {};  // used already
    const ListedProblems listed = list.read(context);
    lock.add(record_lock(runtime, listed.problems, options.seed));
    record_ranges(lock, runtime, listed.ranges);
  }
  if (options.out.empty()) return {lock.to_json()};
  lock.save(options.out);
  const auto hashed = std::count_if(lock.entries().begin(), lock.entries().end(),
                                    [](const auto& entry) { return !entry.second.outputs.empty(); });
  const Json summary = {{"version", 1},
                        {"file", options.out},
                        {"decisions", lock.entries().size()},
                        {"hashed", hashed},
                        {"engines", locked_engines_json(lock)}};
  return {context.json ? dumped(summary)
                       : decisions_text(lock.entries().size()) + " recorded in " + printable(options.out) + ", " +
                             std::to_string(hashed) + " with a hash of " +
                             (lock.entries().size() == 1 ? "its" : "their") + " outputs\n" + locked_engines_text(lock) +
                             (needed.empty() ? "" : lock_in_force(options.out, needed) + "\n")};
}

std::string verify_text(const ReplayReport& report, bool revalidated, const Painter& paint) {
  Table table({"problem", "kernel", "verdict", "outputs", "note"});
  std::size_t failed = 0;
  for (const ReplayResult& result : report.results) {
    const bool bad = result.outcome == ReplayOutcome::failed;
    failed += bad ? 1 : 0;
    table.add({result.problem, result.kernel, std::string(to_string(result.outcome)),
               result.outputs_compared ? "equal" : "not compared", result.reason});
  }
  const std::string all = decisions_text(report.results.size());
  const bool one = report.results.size() == 1;
  const std::string last = failed == 0
                               ? paint(Colour::green, (one ? "the decision holds here" : "all " + all + " hold here"))
                               : paint(Colour::red, std::to_string(failed) + " of " + all +
                                                        (failed == 1 ? " does" : " do") + " not hold here" +
                                                        (report.ran    ? ""
                                                         : revalidated ? "; no outputs were compared"
                                                                       : "; nothing was run"));
  return table.to_text(paint) + "\n" + last + "\n";
}

Json verify_json(const ReplayReport& report) {
  Json results = Json::array();
  for (const ReplayResult& result : report.results) {
    results.push_back({{"problem", result.problem},
                       {"kernel", result.kernel},
                       {"verdict", to_string(result.outcome)},
                       {"outputs_equal", result.outputs_compared ? Json(true) : Json(nullptr)},
                       {"reason", result.reason}});
  }
  return {{"version", 1}, {"fine", report.fine()}, {"ran", report.ran}, {"results", results}};
}

Answer verify(Context& context, const LockRequest& options) {
  const std::string word = files_of(options, 1).front();
  const bool is_model = word.ends_with(".onnx");
  options.model.check_used(is_model);
  if (is_model == options.lock.empty()) {
    fail(ErrorCode::invalid_argument, "xrt",
         is_model ? "lock verify takes a model with its lock; name that with --lock"
                  : "--lock goes with a model; name a file that ends in .onnx, or leave it out");
  }
  const auto lock = std::make_shared<const KernelLock>(KernelLock::load(is_model ? options.lock : word));
  if (lock->entries().empty() && lock->engines().empty()) {
    fail(ErrorCode::not_supported, "xrt", "the lock holds no decision, so there is nothing to verify; record it again");
  }
  Runtime& runtime = context.runtime();
  const LockMode mode = options.revalidate ? LockMode::revalidate : LockMode::strict;
  const ScopedPolicy scope(runtime.dispatcher(), policy_of(context, options));
  const ReplayReport report =
      is_model ? verify_model(context, word, options.model, *lock, mode) : verify_lock(runtime, {lock, mode});
  if (report.fine() && !options.out.empty()) refreshed(runtime, *lock, report).save(options.out);
  return {context.json ? dumped(verify_json(report))
                       : verify_text(report, options.revalidate, context.paint) +
                             limits_line(*lock, runtime.dispatcher().policy().limits()),
          report.fine() ? exit_fine : exit_no};
}

std::vector<LockDifference> difference_to_now(Runtime& runtime, const KernelLock& lock, const LockEntry& entry) {
  if (has_ranges(entry.problem)) return range_differences(runtime, lock, parse_problem_range(entry.problem), &entry);
  KernelLock before;
  before.add(entry, lock.environment_of(entry));
  const std::vector<Problem> problems = {parse_problem(entry.problem)};
  std::vector<LockDifference> found = diff(before, record_lock(runtime, problems, entry.seed));
  // A policy's casts are entries of their own, which this one's lock may hold elsewhere.
  std::erase_if(found, [&](const LockDifference& difference) { return difference.problem != entry.problem; });
  return found;
}

/// What would be decided here and now for the problems of a lock.
std::vector<LockDifference> differences_to_now(Context& context, const LockRequest& options, const KernelLock& lock) {
  Runtime& runtime = context.runtime();
  options.store.use_in(runtime, StoreMode::read_only);
  const ScopedPolicy scope(runtime.dispatcher(), policy_of(context, options));
  std::vector<LockDifference> found;
  for (const auto& [text, entry] : lock.entries()) {
    try {
      for (LockDifference& difference : difference_to_now(runtime, lock, entry)) found.push_back(std::move(difference));
    } catch (const Error& error) {
      found.push_back({text, "kernel", entry.kernel, std::string("none: ") + error.what()});
    }
  }
  return found;
}

/// What is so for many decisions alike is said once, below those that differ in themselves.
std::string difference_text(const std::vector<LockDifference>& found, const char* after, const Painter& paint) {
  const auto said = [](const std::string& text, const char* nothing) { return text.empty() ? nothing : text; };
  Table table({"problem", "what", "before", after});
  std::map<std::string, std::size_t> common;
  std::size_t rows = 0;
  for (const LockDifference& d : found) {
    if (d.field == "limits" || d.field.starts_with("environment.")) {
      ++common[d.field + ": " + said(d.before, "none") + " -> " + said(d.after, "none")];
    } else {
      table.add({d.problem, d.field, said(d.before, "-"), said(d.after, "-")});
      ++rows;
    }
  }
  std::string text = rows == 0 ? "" : table.to_text(paint);
  if (!text.empty() && !common.empty()) text += "\n";
  for (const auto& [line, decisions] : common) text += line + " (" + decisions_text(decisions) + ")\n";
  return text;
}

Answer difference(Context& context, const LockRequest& options) {
  const auto files = files_of(options, 2);
  context.runtime();  // a plugin may bring ops of its own
  const KernelLock before = KernelLock::load(files.front());
  const std::vector<LockDifference> found =
      files.size() == 2 ? diff(before, KernelLock::load(files.back())) : differences_to_now(context, options, before);
  const int exit_code = found.empty() ? exit_fine : exit_no;
  if (context.json) {
    Json list = Json::array();
    for (const LockDifference& d : found) {
      list.push_back({{"problem", d.problem}, {"field", d.field}, {"before", d.before}, {"after", d.after}});
    }
    return {dumped({{"version", 1}, {"differences", list}}), exit_code};
  }
  const bool two = files.size() == 2;
  const std::string text = found.empty() ? "no difference in " + decisions_text(before.entries().size()) + "\n"
                                         : difference_text(found, two ? "after" : "now", context.paint);
  const KernelPolicy policy = context.runtime().dispatcher().policy().merge(policy_of(context, options));
  return {text + (two ? "" : limits_line(before, policy.limits())), exit_code};
}

/// LockRequest that an action would pass over in silence.
void check_options(const LockRequest& options) {
  const bool verify = options.action == "verify", record = options.action == "record";
  const bool two = !verify && !record && options.words.size() > 1;
  const auto refuse = [&](const char* option, const char* of = "") {
    fail(ErrorCode::invalid_argument, "xrt",
         std::string(option) + " means nothing to lock " + options.action + of + "; leave it out");
  };
  if (verify || two) {  // nothing is chosen; but which calls a model makes depends on the policy
    const char* of = two ? " of two locks" : "";
    if (!options.policy.empty() && options.lock.empty()) refuse("--policy", of);
    if (!options.store.path.empty()) refuse("--store", of);
    if (options.deterministic) refuse("--deterministic", of);
  }
  if (!record && options.seed_given) refuse("--seed");  // each entry has its own
  if (!verify && options.revalidate) refuse("--revalidate");
  if (!verify && !record && !options.out.empty()) refuse("--out");
  if (!verify && !options.lock.empty()) refuse("--lock");
  if (!verify && !record) options.model.check_used(false);
}

Answer lock(Context& context, const LockRequest& options) {
  check_options(options);
  if (options.action == "record") return record(context, options);
  return options.action == "verify" ? verify(context, options) : difference(context, options);
}

constexpr const char* help_by_action =
    R"help(Actions:
  record PROBLEM...   Decide each problem as a call would, and write the lock to --out or stdout. A model (.onnx) means
                      its engine and, if that is native, all its calls; it takes --shape, --input, --execution
                      and --engine.
                      Takes --from-log, --out, --policy, --store, --seed, --deterministic.
  verify LOCK         Decide every entry under the lock, then run those with a hash of their outputs and compare.
                      verdict same: nothing that its kernel depends on has changed; revalidated: it was recorded in
                      another environment and is right here; failed: see the note. If one fails, none is run.
                      Takes --revalidate and --out.
  verify MODEL --lock LOCK
                      The same for the engine of a model, and the entries that its calls use; one that is missing
                      fails. Takes --shape, --input, --execution and --policy too: an op that a policy names for
                      all its calls is not made one with others.
  diff LOCK [LOCK]    What changed from the first to the second, or to what would be decided here and now.
                      With one lock it takes --policy, --store and --deterministic.
Exit codes: 0 the lock holds, or nothing differs; 1 it does not, or something does; 2 wrong usage or a bad file.

Example:
  xrt lock record "matmul(f32[64,64], f32[64,64])" --out kernels.lock
  xrt lock verify kernels.lock
  xrt lock verify kernels.lock --revalidate --out kernels.lock
  xrt lock diff before.lock after.lock
  xrt lock record model.onnx --shape x=1,3,224,224 --out kernels.lock)help";

}  // namespace

void add_lock(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "lock",
                  "Record which kernel runs each problem, check that it still does, and show what changed", "");
  command.footer(help_by_action);
  const auto options = std::make_shared<LockRequest>();
  command.add_option("action", options->action, "The action; see below")
      ->type_name("ACTION")
      ->required()
      ->check(CLI::IsMember({"record", "verify", "diff"}));
  command
      .add_option("words", options->words,
                  "Problems or a model for record, lock files for the others, or a model to verify")
      ->type_name("PROBLEM|LOCK|MODEL");
  options->model.add_to(command);
  command.add_option("--lock", options->lock, "verify: the lock that a model is to hold")->type_name("FILE");
  command.add_option("--from-log", options->log, "record: take problems from a trace, or from a text with one a line")
      ->type_name("FILE");
  add_output_to(command, context, "--out", options->out,
                "record: write the lock here; verify: write it here if it holds, with what was revalidated as of now");
  command.add_option("--policy", options->policy, "record, diff: decide under the policy in this JSON file")
      ->type_name("FILE");
  options->store.add_to(command);
  add_seed_to(command, options->seed);
  // The two that other commands have too say here for which actions they are.
  for (const auto& [name, actions] : {std::pair{"--store", "record, diff: "}, {"--seed", "record: "}}) {
    CLI::Option& option = *command.get_option(name);
    option.description(actions + option.get_description());
  }
  command.add_flag("--deterministic", options->deterministic,
                   "record, diff: only kernels that give the same bits, with their hashes");
  command.add_flag("--revalidate", options->revalidate,
                   "verify: check the numbers of entries that were made with other software instead of refusing them");
  command.callback([&context, &command, options] {
    options->seed_given = command.count("--seed") > 0;
    context.command = [&context, options] { return lock(context, *options); };
  });
}

}  // namespace xpuruntime::cli
