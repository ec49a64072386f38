#include "xpuruntime/select/lock.h"

#include <utility>

#include "select/lock_needs.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {
namespace {

/// Why a kernel of this version need not be the code that an entry was made with; empty: it is.
std::string difference_of_versions(const LockEntry& entry, std::string_view here) {
  if (!is_versioned(here)) {
    return entry.kernel +
           " has no version here, so it may be other code than the lock's; give it a version where it is "
           "registered and record the lock again";
  }
  if (here == entry.kernel_version) return {};
  const auto said = [](std::string_view version) {
    return version.empty()         ? "the library's own"
           : is_versioned(version) ? "version " + std::string(version)
                                   : "unversioned";
  };
  return entry.kernel + " is " + said(entry.kernel_version) + " in the lock, " + said(here) + " here";
}

}  // namespace

bool LockEntry::plans_vary() const { return plan == varying_plans && has_ranges(problem); }

LockEntry& KernelLock::add(const Decision& decision, const Environment& environment) {
  if (decision.kernel.empty()) {
    fail(ErrorCode::invalid_argument, "KernelLock::add",
         "nothing was chosen for " + to_string(decision.problem) + ": " + decision.because +
             "; record decisions that have a kernel");
  }
  LockEntry entry;
  entry.problem = to_string(decision.problem);
  entry.kernel = decision.kernel;
  entry.kernel_version = written_version(decision.kernel_version);
  entry.plan = decision.plan;
  entry.workspace_bytes = decision.workspace_bytes;
  return add(entry, environment);
}

LockEntry& KernelLock::add(const LockEntry& entry, const Environment& environment) {
  LockEntry added = entry;
  // An id costs more than to see that the environment is the one of that id.
  const auto same = environments_.find(entry.environment);
  added.environment = same != environments_.end() && same->second == environment ? same->first : environment.id();
  if (const auto found = entries_.find(added.problem); found != entries_.end()) {
    LockEntry& known = found->second;
    if (text_of_choice(known) == text_of_choice(added) && known.environment == added.environment) return known;
    fail(ErrorCode::invalid_argument, "KernelLock::add",
         added.problem + " is locked to " + text_of_choice(known) + " already, and now to " + text_of_choice(added) +
             "; record the two runs as two locks");
  }
  if (has_ranges(added.problem)) ranges_.emplace(added.problem, parse_problem_range(added.problem));
  environments_.emplace(added.environment, environment);
  return entries_.emplace(added.problem, added).first->second;
}

LockedEngine& KernelLock::add(const LockedEngine& engine, const Environment& environment) {
  LockedEngine added = engine;
  added.environment = environment.id();
  const auto [place, is_new] = engines_.emplace(added.model, added);
  if (!is_new && place->second != added) {
    fail(ErrorCode::invalid_argument, "KernelLock::add",
         "model " + added.model + " is locked to " + text_of_choice(place->second) + " already, and now to " +
             text_of_choice(added) + "; record the two as two locks");
  }
  environments_.emplace(added.environment, environment);
  return place->second;
}

void KernelLock::add(const KernelLock& other) {
  for (const auto& [model, engine] : other.engines_) add(engine, other.environment_of(engine));
  for (const auto& [problem, entry] : other.entries_) add(entry, other.environment_of(entry));
}

const LockEntry* KernelLock::find(std::string_view problem) const {
  const auto found = entries_.find(problem);
  return found == entries_.end() ? nullptr : &found->second;
}

const LockEntry* KernelLock::find(const ProblemRange& range) const {
  if (const LockEntry* own = find(to_string(range))) return own;
  for (const auto& [text, other] : ranges_) {
    if (other.contains(range) && range.contains(other)) return find(text);
  }
  return nullptr;
}

const LockEntry* KernelLock::find_for(const Problem& problem) const {
  // Memory of another alignment changes nothing where the kernel takes it by the same plan.
  Problem aligned = problem;
  for (auto* specs : {&aligned.inputs, &aligned.outputs}) {
    for (TensorSpec& spec : *specs) spec.alignment = TensorSpec().alignment;
  }
  const auto own = [this](const Problem& asked) { return find(to_string(asked)); };
  for (const Problem* asked : {&problem, &std::as_const(aligned)}) {
    if (const LockEntry* found = own(*asked)) return found;
  }
  const auto ranged = [this](const Problem& asked, const Problem& plain) -> const LockEntry* {
    const std::string_view op = to_string(asked.op);  // which texts begin with
    for (auto at = ranges_.lower_bound(std::string(op)); at != ranges_.end() && at->first.starts_with(op); ++at) {
      if (at->second.contains(asked) || at->second.contains(plain)) return find(at->first);
    }
    return nullptr;
  };
  if (const LockEntry* found = ranged(problem, aligned)) return found;
  // Nor may `deterministic`; the plan tells.
  Problem other = problem;
  other.limits.deterministic = aligned.limits.deterministic = !problem.limits.deterministic;
  for (const Problem* asked : {&std::as_const(other), &std::as_const(aligned)}) {
    if (const LockEntry* found = own(*asked)) return found;
  }
  const LockEntry* found = ranged(other, aligned);
  return found == nullptr || found->plans_vary() ? nullptr : found;
}

const Environment& KernelLock::environment_of(const LockEntry& entry) const {
  const auto found = environments_.find(entry.environment);
  if (found != environments_.end()) return found->second;
  fail(ErrorCode::invalid_argument, "KernelLock::environment_of",
       "the lock has no environment " + entry.environment + "; pass an entry of this lock");
}

const Environment& KernelLock::environment_of(const LockedEngine& engine) const {
  return environment_of(LockEntry{.environment = engine.environment});
}

EnvironmentMatch KernelLock::match(const LockEntry& entry, const Environment& here,
                                   std::string_view kernel_version) const {
  const LockNeeds needs = needs_of(entry);
  EnvironmentMatch match = compare_environments(needs.part_of(environment_of(entry)), needs.part_of(here));
  std::string other = difference_of_versions(entry, kernel_version);
  if (match.verdict == EntryVerdict::refuse || other.empty()) return match;
  if (!match.reason.empty()) other += "; " + match.reason;
  return {EntryVerdict::revalidate, std::move(other)};
}

}  // namespace xpuruntime
