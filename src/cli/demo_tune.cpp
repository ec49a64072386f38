#include "cli/demo_tune.h"

#include <algorithm>
#include <filesystem>

#include "cli/progress.h"
#include "cli/table.h"
#include "cli/tuned.h"
#include "core/json_text.h"
#include "xpuruntime/device/current.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/select/exact_rule.h"

namespace xpuruntime::cli {
namespace {

struct TunedBlock {
  std::string name = {};
  std::vector<Problem> problems = {};  // in the block's order, repeated as they are there
};

/// What the replay of the lock gave.
struct Replayed {
  std::size_t decisions = 0;
  std::size_t equal = 0;  // outputs with the recorded hash
  ReplayReport report = {};
};

std::vector<TunedBlock> bound_problems(Context& context, const std::vector<Block>& blocks) {
  const Device device = context.given_device().value_or(current_device());
  std::vector<TunedBlock> out;
  for (const Block& block : blocks) {
    TunedBlock tuned{block.name, {}};
    for (const BoundStep& step : bind(block, 1, context.runtime().devices(), device)) {
      tuned.problems.push_back(step.problem);
      tuned.problems.back().limits.deterministic = true;
    }
    out.push_back(std::move(tuned));
  }
  return out;
}

std::vector<Problem> each_once(const std::vector<TunedBlock>& blocks) {
  std::vector<Problem> out;
  for (const TunedBlock& block : blocks) {
    for (const Problem& problem : block.problems) {
      if (std::find(out.begin(), out.end(), problem) == out.end()) out.push_back(problem);
    }
  }
  return out;
}

const TuneResult& result_of(const std::vector<TuneResult>& results, const Problem& problem) {
  const auto found =
      std::find_if(results.begin(), results.end(), [&](const TuneResult& r) { return r.problem == problem; });
  if (found == results.end() || found->chosen.empty()) {
    fail(ErrorCode::not_supported, "demo",
         to_string(problem) + " was not tuned" + (found == results.end() ? "" : ": " + found->because) +
             "; try it alone with xrt bench");
  }
  return *found;
}

double time_us(const TunedCandidate* row) { return row == nullptr ? 0 : row->time_us.value_or(0); }

/// Microseconds of a whole block, by what would run untuned and by what was chosen.
std::pair<double, double> totals(const TunedBlock& block, const std::vector<TuneResult>& results) {
  std::pair<double, double> sum = {0, 0};
  for (const Problem& problem : block.problems) {
    const TuneResult& result = result_of(results, problem);
    sum.first += time_us(result.default_row());
    sum.second += time_us(result.chosen_row());
  }
  return sum;
}

std::vector<TuneResult> tune_each(Runtime& runtime, const std::vector<Problem>& problems) {
  std::vector<TuneResult> results;
  ProgressShow show(problems.size());
  TuneOptions options;
  options.progress = [&](const TuneProgress& progress) {
    show.moved(progress);
    return true;
  };
  runtime.tune(problems, options, [&](const TuneResult& result) {
    show.finished(result);
    results.push_back(result);
  });
  return results;
}

void save_policy(const std::string& path, const std::vector<TuneResult>& results) {
  KernelPolicy policy;
  policy.deterministic = true;
  std::vector<PolicyRule> rules;
  for (const TuneResult& result : results) {
    const TunedCandidate* const chosen = result.chosen_row();
    rules.push_back(exact_rule(result.problem, result.chosen, chosen == nullptr ? "" : chosen->variant));
  }
  with_exact_rules(policy, std::move(rules)).save(path);
}

/// The folder is made, and what cannot be written there is told before anything is measured.
TunedFiles files_in(const TunedDemo& options) {
  std::error_code failed;
  std::filesystem::create_directories(options.folder, failed);  // where it is not there, no file can be made
  const std::string policy = options.folder + "/policy.json", lock = options.folder + "/kernels.lock";
  for (const std::string& file : {policy, lock}) {
    if (const std::string flaw = flaw_of_new_file(file); !flaw.empty()) {
      fail(ErrorCode::io_error, "xrt", "'" + file + "' " + flaw);
    }
  }
  return {.store = options.store.file(), .policy = policy, .lock = lock, .lock_policy = policy};
}

/// Decides by the policy file alone, records, and replays what the file on the disk says.
Replayed record_and_replay(Runtime& runtime, const TunedFiles& files, const std::vector<Problem>& problems) {
  {
    const ScopedPolicy scope(runtime.dispatcher(), KernelPolicy::load(files.policy));
    record_lock(runtime, problems).save(files.lock);
  }
  const auto lock = std::make_shared<const KernelLock>(KernelLock::load(files.lock));
  Replayed replayed{lock->entries().size(), 0, verify_lock(runtime, {lock})};
  for (const ReplayResult& result : replayed.report.results) replayed.equal += result.outputs_compared ? 1 : 0;
  return replayed;
}

std::string as_text(const std::vector<TunedBlock>& blocks, const Tuned& tuned, const Replayed& replayed,
                    const Painter& paint) {
  std::string text = tuned_text(tuned, paint);
  for (const TunedBlock& block : blocks) {
    const auto [before, after] = totals(block, tuned.results);
    text += block.name + ": " + figure("%.2f ms", before / 1000) + " by default, " + figure("%.2f ms", after / 1000) +
            " tuned, " + figure("%.2fx\n", after > 0 ? before / after : 1);
  }
  const std::string last = "replayed: " + std::to_string(replayed.equal) + " of " + std::to_string(replayed.decisions) +
                           " outputs have the hash that was recorded\n";
  return text + paint(replayed.equal == replayed.decisions ? Colour::green : Colour::red, last);
}

std::string as_json(const std::vector<TunedBlock>& blocks, const Tuned& tuned, const Replayed& replayed) {
  Json document = parse_known_json(tuned_json(tuned));
  Json list = Json::array();
  for (const TunedBlock& block : blocks) {
    const auto [before, after] = totals(block, tuned.results);
    list.push_back({{"block", block.name}, {"default_us", before}, {"tuned_us", after}});
  }
  document["blocks"] = list;
  document["replayed"] = {{"decisions", replayed.decisions}, {"outputs_equal", replayed.equal}};
  return dump_json(document, 2) + "\n";
}

}  // namespace

Answer tune_blocks(Context& context, const std::vector<Block>& blocks, const TunedDemo& options) {
  Runtime& runtime = context.runtime();
  const TunedFiles files = files_in(options);
  options.store.use_in(runtime, StoreMode::read_write);
  const std::vector<TunedBlock> bound = bound_problems(context, blocks);
  Tuned tuned{.problems = each_once(bound), .complete = true, .problem_budget = "the limit of 0.5 s for each"};
  tuned.results = tune_each(runtime, tuned.problems);
  for (const Problem& problem : tuned.problems) result_of(tuned.results, problem);  // else nothing is written
  tuned.files = files;
  save_policy(tuned.files.policy, tuned.results);
  const Replayed replayed = record_and_replay(runtime, tuned.files, tuned.problems);
  const bool fine = replayed.report.fine() && replayed.equal == replayed.decisions;
  return {context.json ? as_json(bound, tuned, replayed) : as_text(bound, tuned, replayed, context.paint),
          fine ? exit_fine : exit_no};
}

}  // namespace xpuruntime::cli
