#include "runtime/decided_parts.h"

#include <map>
#include <optional>

#include "tune/range_search.h"

namespace xpuruntime {
namespace {

/// The plan that all problems of a part have, by those of the whole range.
std::string plan_of(const ProblemRange& range, const std::vector<std::string>& plans, const ProblemRange& part) {
  std::optional<std::string> plan;
  for (std::size_t index = 0; index < plans.size(); ++index) {
    const std::vector<std::int64_t> sizes = range.sizes_at(index);
    bool inside = true;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      inside = inside && sizes[i] >= part.names()[i].low && sizes[i] <= part.names()[i].high;
    }
    if (!inside) continue;
    if (plan && *plan != plans[index]) return std::string(varying_plans);
    plan = plans[index];
  }
  return plan.value_or("");
}

}  // namespace

void check_count(const ProblemRange& range, const std::string& function) {
  constexpr std::size_t most_problems = 4096;
  if (range.count() > most_problems) {
    fail(ErrorCode::invalid_argument, function,
         to_string(range) + " holds " + std::to_string(range.count()) + " problems, and at most " +
             std::to_string(most_problems) + " are decided one by one; narrow it");
  }
}

std::vector<DecidedPart> decided_parts(Runtime& runtime, const ProblemRange& range, const std::string& function) {
  check_count(range, function);
  const ScopedPolicy limits(runtime.dispatcher(), KernelPolicy::from_limits(range.least().limits));
  std::map<std::string, int> numbers;
  std::vector<int> choice;
  std::vector<std::string> plans;
  for (std::size_t index = 0; index < range.count(); ++index) {
    const Decision decision = runtime.dispatcher().explain(range.at(index));
    choice.push_back(numbers.emplace(decision.kernel, static_cast<int>(numbers.size())).first->second);
    plans.push_back(decision.plan);
  }
  std::vector<DecidedPart> parts;
  for (const RangePart& part : parts_of(range.names(), choice)) {
    DecidedPart decided{range.with_names(part.names)};
    decided.least = runtime.dispatcher().explain(decided.range.least());
    decided.largest = runtime.dispatcher().explain(decided.range.at(decided.range.count() - 1));
    decided.plan = plan_of(range, plans, decided.range);
    parts.push_back(std::move(decided));
  }
  return parts;
}

}  // namespace xpuruntime
