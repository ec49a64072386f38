#include "runtime/decided_parts.h"

#include <algorithm>
#include <map>

#include "tune/range_grid.h"
#include "tune/range_search.h"

namespace xpuruntime {
namespace {

/// The plan that all problems of a part have, by those of the whole range.
std::string plan_of(const ProblemRange& range, const std::vector<std::string>& plans, const ProblemRange& part) {
  Box box;
  for (std::size_t i = 0; i < range.names().size(); ++i) {
    const std::int64_t low = range.names()[i].low;
    box.low.push_back(static_cast<std::size_t>(part.names()[i].low - low));
    box.high.push_back(static_cast<std::size_t>(part.names()[i].high - low));
  }
  const RangeGrid grid(range.names());
  const std::string& first = plans[grid.index(box.low)];
  const bool same = grid.each(box, [&](std::size_t index) { return plans[index] == first; });
  return same ? first : std::string(varying_plans);
}

/// What the lock holds for the sizes of a part, to be compared with what is decided for them now.
LockEntry before_of(const LockEntry& entry, const LockEntry& now, const std::string& problem) {
  LockEntry before = entry;
  before.problem = problem;
  before.outputs.clear();
  if (entry.plans_vary()) before.plan = now.plan;
  // Of a range it is the most that any of its sizes needs.
  if (has_ranges(entry.problem) && entry.problem != problem) before.workspace_bytes = now.workspace_bytes;
  return before;
}

}  // namespace

LockEntry DecidedPart::entry() const {
  LockEntry entry;
  entry.problem = to_string(range.with_dtypes_of(least.problem).with_limits(least.problem.limits));
  entry.kernel = least.kernel;
  entry.kernel_version = written_version(least.kernel_version);
  entry.plan = plan;
  entry.workspace_bytes = std::max(least.workspace_bytes, largest.workspace_bytes);
  return entry;
}

void check_count(const ProblemRange& range, const std::string& function) {
  if (range.count() > most_decided) {
    fail(ErrorCode::invalid_argument, function,
         to_string(range) + " holds " + std::to_string(range.count()) + " problems, and at most " +
             std::to_string(most_decided) + " are decided one by one; narrow it");
  }
}

std::vector<DecidedPart> decided_parts(Runtime& runtime, const ProblemRange& range, const std::string& function,
                                       const std::function<std::string(const Decision&)>& apart) {
  check_count(range, function);
  const ScopedPolicy limits(runtime.dispatcher(), KernelPolicy::from_limits(range.least().limits));
  std::map<std::pair<std::string, std::string>, int> numbers;
  std::vector<int> choice;
  std::vector<std::string> plans;
  for (std::size_t index = 0; index < range.count(); ++index) {
    const Decision decision = runtime.dispatcher().explain(range.at(index));
    std::pair kind(decision.kernel, apart ? apart(decision) : "");
    choice.push_back(numbers.emplace(std::move(kind), static_cast<int>(numbers.size())).first->second);
    plans.push_back(decision.plan);
  }
  const std::vector<RangePart> found = parts_of(range.names(), choice);
  if (found.size() > most_parts) {
    fail(ErrorCode::not_supported, function,
         to_string(range) + " falls into " + std::to_string(found.size()) + " parts of one kernel each, and at most " +
             std::to_string(most_parts) + " are kept; narrow it, or name one kernel for it in the policy");
  }
  std::vector<DecidedPart> parts;
  for (const RangePart& part : found) {
    DecidedPart decided{range.with_names(part.names)};
    decided.least = runtime.dispatcher().explain(decided.range.least());
    decided.largest = runtime.dispatcher().explain(decided.range.at(decided.range.count() - 1));
    decided.plan = plan_of(range, plans, decided.range);
    parts.push_back(std::move(decided));
  }
  return parts;
}

std::vector<LockDifference> range_differences(Runtime& runtime, const KernelLock& lock, const ProblemRange& range,
                                              const LockEntry* own) {
  const auto locked = [&](const Decision& decision) { return own != nullptr ? own : lock.find_for(decision.problem); };
  const auto apart = [&](const Decision& decision) -> std::string {
    const LockEntry* entry = locked(decision);
    if (entry == nullptr) return {};
    return entry->problem + (entry->kernel == decision.kernel && entry->plan == decision.plan ? " as before" : "");
  };
  KernelLock before, now;
  std::vector<LockDifference> found;
  for (const DecidedPart& part : decided_parts(runtime, range, "lock diff", apart)) {
    const LockEntry* entry = locked(part.least);
    const LockEntry decided = part.entry();
    const std::string text = own == nullptr ? decided.problem : to_string(part.range);
    if (entry != nullptr && decided.kernel.empty()) {
      found.push_back({text, "kernel", entry->kernel, "none: " + part.least.because});
      continue;
    }
    if (entry != nullptr) before.add(before_of(*entry, decided, text), lock.environment_of(*entry));
    if (!decided.kernel.empty()) now.add(decided, environment_at(runtime, range.least().device));
  }
  const std::vector<LockDifference> others = diff(before, now);
  found.insert(found.end(), others.begin(), others.end());
  return found;
}

}  // namespace xpuruntime
