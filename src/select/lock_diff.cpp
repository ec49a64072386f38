#include <algorithm>

#include "select/lock_needs.h"

namespace xpuruntime {
namespace {

class Differ {
 public:
  Differ(const KernelLock& before, const KernelLock& after) : before_(before), after_(after) {}

  std::vector<LockDifference> run() {
    for (const auto& [problem, entry] : before_.entries()) {
      const LockEntry* other = after_.find(problem);
      if (other == nullptr) {
        gone_[without_limits(problem).problem].push_back(&entry);
      } else {
        compare(entry, *other);
      }
    }
    for (const auto& [problem, entry] : after_.entries()) {
      if (before_.find(problem) == nullptr) new_[without_limits(problem).problem].push_back(&entry);
    }
    pair_by_limits();
    for (const auto& [problem, entries] : gone_) {
      for (const LockEntry* entry : entries) out_.push_back({entry->problem, "entry", text_of_choice(*entry), ""});
    }
    for (const auto& [problem, entries] : new_) {
      for (const LockEntry* entry : entries) out_.push_back({entry->problem, "entry", "", text_of_choice(*entry)});
    }
    std::stable_sort(out_.begin(), out_.end(), [](const auto& a, const auto& b) { return a.problem < b.problem; });
    return std::move(out_);
  }

 private:
  using ByProblem = std::map<std::string, std::vector<const LockEntry*>>;

  void compare(const LockEntry& a, const LockEntry& b) {
    const auto field = [&](const std::string& name, const std::string& before, const std::string& after) {
      if (before != after) out_.push_back({a.problem, name, before, after});
    };
    field("kernel", a.kernel, b.kernel);
    field("kernel_version", a.kernel_version, b.kernel_version);
    field("plan", a.plan, b.plan);
    field("workspace_bytes", std::to_string(a.workspace_bytes), std::to_string(b.workspace_bytes));
    const bool both_hashed = !a.outputs.empty() && !b.outputs.empty() && a.seed == b.seed;
    if (both_hashed) field("outputs", a.outputs, b.outputs);
    const Environment &there = before_.environment_of(a), &here = after_.environment_of(b);
    if (a.environment == b.environment) return;
    const LockNeeds needs = needs_of(a) | needs_of(b);
    for (const EnvironmentDifference& d : environment_differences(needs.part_of(there), needs.part_of(here))) {
      field("environment." + d.field, d.there, d.here);
    }
  }

  /// A problem that one lock has under some limits and the other under others is one problem, where it is clear which.
  void pair_by_limits() {
    for (auto& [problem, entries] : gone_) {
      const auto found = new_.find(problem);
      if (found == new_.end() || entries.size() != 1 || found->second.size() != 1) continue;
      const LockEntry &a = *entries.front(), &b = *found->second.front();
      out_.push_back({a.problem, "limits", without_limits(a.problem).limits, without_limits(b.problem).limits});
      compare(a, b);
      entries.clear();
      found->second.clear();
    }
  }

  const KernelLock& before_;
  const KernelLock& after_;
  ByProblem gone_, new_;
  std::vector<LockDifference> out_;
};

}  // namespace

std::vector<LockDifference> diff(const KernelLock& before, const KernelLock& after) {
  return Differ(before, after).run();
}

}  // namespace xpuruntime
