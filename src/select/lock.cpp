#include "xpuruntime/select/lock.h"

#include "xpuruntime/core/error.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {
namespace {

std::string described(const LockEntry& entry) {
  const auto behind = [](const std::string& text) { return text.empty() ? "" : " " + text; };
  return entry.kernel + behind(entry.kernel_version) + behind(entry.plan);
}

/// Why a kernel of this version need not be the code that an entry was made with; empty: it is.
std::string difference_of_versions(const LockEntry& entry, std::string_view here) {
  if (!is_versioned(here)) {
    return entry.kernel +
           " has no version here, so it may be other code than the lock's; give it a version where it is "
           "registered and record the lock anew";
  }
  if (here == entry.kernel_version) return {};
  const auto said = [](std::string_view version) {
    return version.empty()         ? "the library's own"
           : is_versioned(version) ? "version " + std::string(version)
                                   : "unversioned";
  };
  return entry.kernel + " is " + said(entry.kernel_version) + " in the lock, " + said(here) + " here";
}

/// Adds what differs between two entries of one problem.
void compare(const LockEntry& a, const LockEntry& b, std::vector<LockDifference>& out) {
  const auto field = [&](const char* name, const std::string& before, const std::string& after) {
    if (before != after) out.push_back({a.problem, name, before, after});
  };
  field("kernel", a.kernel, b.kernel);
  field("kernel_version", a.kernel_version, b.kernel_version);
  field("plan", a.plan, b.plan);
  field("workspace_bytes", std::to_string(a.workspace_bytes), std::to_string(b.workspace_bytes));
  const bool both_hashed = !a.outputs.empty() && !b.outputs.empty() && a.seed == b.seed;
  if (both_hashed) field("outputs", a.outputs, b.outputs);
  field("environment", a.environment, b.environment);
}

}  // namespace

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
    if (described(known) == described(added) && known.environment == added.environment) return known;
    fail(ErrorCode::invalid_argument, "KernelLock::add",
         added.problem + " is locked to " + described(known) + " already, and now to " + described(added) +
             "; record the two runs as two locks");
  }
  environments_.emplace(added.environment, environment);
  return entries_.emplace(added.problem, added).first->second;
}

const LockEntry* KernelLock::find(std::string_view problem) const {
  const auto found = entries_.find(problem);
  return found == entries_.end() ? nullptr : &found->second;
}

const Environment& KernelLock::environment_of(const LockEntry& entry) const {
  const auto found = environments_.find(entry.environment);
  if (found != environments_.end()) return found->second;
  fail(ErrorCode::invalid_argument, "KernelLock::environment_of",
       "the lock has no environment " + entry.environment + "; pass an entry of this lock");
}

EnvironmentMatch KernelLock::match(const LockEntry& entry, const Environment& here,
                                   std::string_view kernel_version) const {
  EnvironmentMatch match = compare_environments(environment_of(entry), here);
  std::string other = difference_of_versions(entry, kernel_version);
  if (match.verdict == EntryVerdict::refuse || other.empty()) return match;
  if (!match.reason.empty()) other += "; " + match.reason;
  return {EntryVerdict::revalidate, std::move(other)};
}

std::vector<LockDifference> diff(const KernelLock& before, const KernelLock& after) {
  std::vector<LockDifference> out;
  auto a = before.entries().begin();
  auto b = after.entries().begin();
  while (a != before.entries().end() || b != after.entries().end()) {
    const bool only_a = b == after.entries().end() || (a != before.entries().end() && a->first < b->first);
    const bool only_b = a == before.entries().end() || (b != after.entries().end() && b->first < a->first);
    if (only_a) {
      out.push_back({a->first, "entry", described(a->second), ""});
      ++a;
    } else if (only_b) {
      out.push_back({b->first, "entry", "", described(b->second)});
      ++b;
    } else {
      compare(a->second, b->second, out);
      ++a, ++b;
    }
  }
  return out;
}

}  // namespace xpuruntime
