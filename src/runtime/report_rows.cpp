#include "runtime/report_rows.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "runtime/decided_parts.h"
#include "select/policy_check.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/tune/work_group_tuner.h"

namespace xpuruntime {
namespace {

/// "m=1..8", or "m=8": the sizes of a part.
std::string sizes_of(const ProblemRange& part) {
  std::string text;
  for (const SizeRange& name : part.names()) {
    text += (text.empty() ? "" : ", ") + name.name + "=" + std::to_string(name.low);
    if (name.high > name.low) text += ".." + std::to_string(name.high);
  }
  return text;
}

/// What is decided for the least sizes of a part. Its reason may name bytes or a size, so it says whose.
Decision least_of(const DecidedPart& part) {
  std::vector<SizeRange> sizes = part.range.names();
  for (SizeRange& size : sizes) size.high = size.low;
  const std::string at = "at " + sizes_of(part.range.with_names(sizes));
  Decision decision = part.least;
  if (decision.because.find(at) == std::string::npos) decision.because += " (" + at + ")";
  return decision;
}

/// Reads rows out of locks, a store and this machine's own decisions; each problem of an environment once.
class RowMaker {
 public:
  RowMaker(Runtime& runtime, const ReportOptions& options) : runtime_(runtime), options_(options) {}

  ReportRows make() {
    if (options_.lock != nullptr) {
      for (const auto& [text, entry] : options_.lock->entries()) add_locked(entry);
    }
    for (const Problem& problem : options_.problems) add_decided(problem);
    for (const ProblemRange& range : options_.ranges) {
      add_range({range});
    }
    if (options_.list_store && options_.store != nullptr) add_store();
    const bool named = options_.lock != nullptr || options_.list_store || !options_.models.empty();
    if (made_.rows.empty() && !named) add_default();
    if (options_.against != nullptr) {
      for (const auto& [text, entry] : options_.against->entries()) {
        made_.environments[entry.environment].environment = options_.against->environment_of(entry);
      }
    }
    for (auto& [id, environment] : made_.environments) environment.match = match_here(environment.environment);
    return std::move(made_);
  }

 private:
  /// The best that any device here says of it.
  EnvironmentMatch match_here(const Environment& there) const {
    // First the CPU's: a look at all devices starts their drivers.
    EnvironmentMatch best = compare_environments(there, environment_at(runtime_, {}));
    if (best.verdict == EntryVerdict::same) return best;
    best = {EntryVerdict::refuse, "device " + there.device + " is not here"};
    for (const Device device : runtime_.devices().devices()) {
      EnvironmentMatch match = compare_environments(there, environment_at(runtime_, device));
      if (match.verdict < best.verdict) best = std::move(match);
    }
    return best;
  }

  void add_locked(const LockEntry& entry) {
    const Environment& environment = options_.lock->environment_of(entry);
    ReportRow row = {entry.problem, "lock", entry.kernel, entry.plan, entry.workspace_bytes};
    row.kernel_version = entry.kernel_version;
    row.entry = entry;
    decide_there(row, environment);
    const StoreSnapshot::Entry known = known_of(row, environment);
    const bool raced = row.choice && row.choice->kernel == row.kernel && row.choice->plan == row.plan;
    const bool decided = row.decision && row.decision->kernel == row.kernel;
    row.because = raced ? row.choice->because : decided ? row.decision->because : "the lock says so";
    add(std::move(row), known, environment);
  }

  void add_stored(const std::string& problem, const Environment& environment) {
    ReportRow row = {problem, "store"};
    decide_there(row, environment);
    const StoreSnapshot::Entry known = known_of(row, environment);
    if (row.choice) {
      row.kernel = row.choice->kernel;
      row.kernel_version = written_version(row.choice->kernel_version);
      row.plan = row.choice->plan;
      row.because = row.choice->because;
      for (const Measurement& m : known.measurements) {
        if (m.kernel == row.kernel && m.plan == row.plan) row.workspace_bytes = m.workspace_bytes;
      }
    } else {
      row.because = "measured, but no race was won";
    }
    add(std::move(row), known, environment);
  }

  /// Shown by the ends of each part.
  void add_range(const ReportRange& asked) {
    made_.ranges.push_back(asked);
    for (const DecidedPart& part : decided_parts(runtime_, asked.range, "report")) {
      add_decided(part.range.least(), true);
      add_decided(part.range.at(part.range.count() - 1), true);
    }
  }

  void add_decided(const Problem& problem, bool of_range = false) {
    const ScopedPolicy limits(runtime_.dispatcher(), KernelPolicy::from_limits(problem.limits));
    Decision decision = runtime_.dispatcher().explain(problem);
    ReportRow row = {to_string(decision.problem), "here",          decision.kernel, decision.plan,
                     decision.workspace_bytes,    decision.because};
    row.kernel_version = written_version(decision.kernel_version);
    row.decision = std::move(decision);
    row.of_range = of_range;
    const Environment environment = environment_at(runtime_, problem.device);
    const StoreSnapshot::Entry known = known_of(row, environment);
    add(std::move(row), known, environment);
  }

  void add_store() {
    for (const StoreRow& stored : options_.store->read()) {
      std::set<std::string> problems;
      for (const Measurement& m : stored.record.measurements) problems.insert(m.problem);
      for (const TunedChoice& c : stored.record.choices) problems.insert(c.problem);
      for (const QuarantineEntry& q : stored.record.quarantine) problems.insert(q.problem);
      for (const std::string& problem : problems) add_stored(problem, stored.environment);
    }
  }

  void add_default() {
    if (options_.against == nullptr) {
      for (const Problem& problem : sample_problems()) add_decided(problem);
      return;
    }
    for (const auto& [text, entry] : options_.against->entries()) {
      const Problem problem = least_problem(text);
      if (!runtime_.devices().has(problem.device)) {
        add_absent(text, problem.device, options_.against->environment_of(entry));
      } else if (has_ranges(text)) {
        add_range({parse_problem_range(text), &entry});
      } else {
        add_decided(problem);
      }
    }
  }

  void add_absent(const std::string& problem, Device device, const Environment& environment) {
    const std::string why = runtime_.devices().why_absent(device.type);
    ReportRow row = {problem, "here"};
    row.because = to_string(device) + " is not here" + (why.empty() ? "" : ": " + why);
    const StoreSnapshot::Entry known = known_of(row, environment);
    add(std::move(row), known, environment);
  }

  /// What this machine says of a problem whose precision and limits were settled elsewhere, with a note where that is
  /// another kernel than the lock's; nothing where the device is another.
  void decide_there(ReportRow& row, const Environment& there) const {
    if (row.problem.starts_with(opencl_kernel_op)) return;  // a local size: nobody decides about it
    try {
      const Problem problem = least_problem(row.problem);
      if (!runtime_.devices().has(problem.device)) return;
      const EnvironmentMatch match = compare_environments(there, environment_at(runtime_, problem.device));
      if (match.verdict == EntryVerdict::refuse) return;
      Dispatcher& dispatcher = runtime_.dispatcher();
      const KernelPolicy policy = kernel_choices(dispatcher.policy()).merge(KernelPolicy::from_limits(problem.limits));
      const ScopeGuard scope(dispatcher, dispatcher.make_scope(policy, {}, LockUse{}));
      if (has_ranges(row.problem)) {
        decide_range(row, parse_problem_range(row.problem));
      } else {
        row.decision = dispatcher.explain(problem);
        if (row.entry && row.decision->kernel != row.kernel) note_other(row, *row.decision, "");
      }
      if (row.entry) note_failure(row);
    } catch (const Error& error) {
      // An op of a plugin that is not loaded: what is on record can still be shown.
      const std::string why = error.what();
      row.notes.push_back("it cannot be decided here: " + why.substr(0, why.find("; ")));
    }
  }

  /// Where `xrt lock verify` would fail, unless its candidates say why.
  void note_failure(ReportRow& row) const {
    const ReplayResult result = decide_entry(runtime_, {options_.lock}, *row.entry);
    const auto refuses = [&](const Candidate& c) { return c.kernel == row.kernel && c.outcome == Outcome::refused; };
    const std::vector<Candidate>& known = row.decision->candidates;
    if (result.outcome != ReplayOutcome::failed || std::any_of(known.begin(), known.end(), refuses)) return;
    row.notes.push_back("it cannot be replayed here: " + result.reason);
  }

  /// The decision of the first size that gets the lock's kernel, else of the least.
  void decide_range(ReportRow& row, const ProblemRange& range) const {
    const std::vector<DecidedPart> parts = decided_parts(runtime_, range, "report");
    std::map<std::string, std::vector<const DecidedPart*>> others;  // by kernel
    for (const DecidedPart& part : parts) {
      if (part.least.kernel != row.kernel) {
        others[part.least.kernel].push_back(&part);
      } else if (!row.decision) {
        row.decision = least_of(part);
      }
    }
    for (const auto& [kernel, found] : others) {
      constexpr std::size_t most = 4;
      std::string where;
      for (std::size_t i = 0; i < std::min(found.size(), most); ++i) {
        where += (i == 0 ? " for " : " and ") + sizes_of(found[i]->range);
      }
      if (found.size() > most) where += " and in " + std::to_string(found.size() - most) + " more parts";
      note_other(row, least_of(*found.front()), parts.size() == 1 ? "" : where);
    }
    if (!row.decision) row.decision = least_of(parts.front());
  }

  static void note_other(ReportRow& row, const Decision& now, const std::string& where) {
    row.notes.push_back("here and now " + (now.kernel.empty() ? "nothing" : now.kernel) + " would run" + where + ": " +
                        now.because);
  }

  /// What the store knows about the row's problem there; takes the choice over.
  StoreSnapshot::Entry known_of(ReportRow& row, const Environment& environment) {
    if (options_.store == nullptr) return {};
    auto& snapshot = snapshots_[environment.id()];
    if (snapshot == nullptr) snapshot = options_.store->freeze(environment);
    StoreSnapshot::Entry known = snapshot->find(row.problem).value_or(StoreSnapshot::Entry{});
    if (!known.stale.empty()) row.notes.push_back("the times were taken elsewhere: " + known.stale);
    if (known.stale.empty()) row.choice = known.choice;
    if (row.choice && row.choice->cut_short) row.notes.push_back("the budget ended the race before it was sure");
    return known;
  }

  void add(ReportRow row, const StoreSnapshot::Entry& known, const Environment& environment) {
    row.environment = environment.id();
    if (!seen_.insert({row.problem, row.environment}).second) return;
    add_candidates(row, known);
    made_.environments[row.environment].environment = environment;
    made_.rows.push_back(std::move(row));
  }

  Runtime& runtime_;
  const ReportOptions& options_;
  ReportRows made_ = {};
  std::set<std::pair<std::string, std::string>> seen_ = {};
  std::map<std::string, std::shared_ptr<const StoreSnapshot>> snapshots_ = {};  // by environment
};

/// The rows of single problems as a lock; of duplicate problems, the first.
KernelLock lock_of(const ReportRows& rows) {
  KernelLock lock;
  for (const ReportRow& row : rows.rows) {
    if (row.of_range || row.kernel.empty() || lock.find(row.problem) != nullptr) continue;
    LockEntry entry = {row.problem, row.kernel, row.plan, row.workspace_bytes};
    entry.kernel_version = row.kernel_version;
    lock.add(entry, rows.environments.at(row.environment).environment);
  }
  return lock;
}

/// The lock, with entries of their own for single problems that it holds in ranges.
KernelLock unrolled(const KernelLock& lock, const ReportRows& rows) {
  KernelLock out = lock;
  for (const ReportRow& row : rows.rows) {
    if (row.of_range || !row.decision || out.find(row.problem) != nullptr) continue;
    const LockEntry* range = lock.find_for(row.decision->problem);
    if (range == nullptr || !has_ranges(range->problem)) continue;
    LockEntry entry = *range;
    entry.problem = row.problem;
    if (range->plans_vary()) entry.plan = row.plan;
    entry.workspace_bytes = row.workspace_bytes;  // the range has the most that any of its sizes needs
    out.add(entry, lock.environment_of(*range));
  }
  return out;
}

}  // namespace

const ReportCandidate* ReportRow::chosen() const {
  const auto found = std::find_if(candidates.begin(), candidates.end(),
                                  [](const ReportCandidate& candidate) { return candidate.verdict == "chosen"; });
  return found == candidates.end() ? nullptr : &*found;
}

std::shared_ptr<const MeasurementStore> open_default_store() {
  std::string path;
  try {
    path = default_store_path();
  } catch (const Error&) {
    return nullptr;  // no home, no cache folder
  }
  std::error_code ignored;
  return std::filesystem::exists(path, ignored) ? open_store(path, StoreMode::read_only) : nullptr;
}

ReportRows report_rows(Runtime& runtime, const ReportOptions& options) { return RowMaker(runtime, options).make(); }

std::vector<LockDifference> report_changes(Runtime& runtime, const ReportRows& rows, const ReportOptions& options) {
  if (options.against == nullptr) return {};
  if (options.lock != nullptr) return diff(*options.against, *options.lock);
  std::vector<LockDifference> found = diff(unrolled(*options.against, rows), lock_of(rows));
  // Who asks about some problems does not ask about the others.
  std::set<std::string_view> asked;
  for (const ReportRow& row : rows.rows) {
    if (!row.of_range) asked.insert(row.problem);
  }
  std::erase_if(found, [&](const LockDifference& difference) { return !asked.contains(difference.problem); });
  for (const ReportRange& asked_range : rows.ranges) {
    const auto more = range_differences(runtime, *options.against, asked_range.range, asked_range.entry);
    found.insert(found.end(), more.begin(), more.end());
  }
  return found;
}

}  // namespace xpuruntime
