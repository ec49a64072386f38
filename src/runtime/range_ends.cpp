#include "runtime/range_ends.h"

#include <algorithm>
#include <map>

#include "tune/range_search.h"

namespace xpuruntime {

std::vector<Problem> range_ends(Runtime& runtime, const ProblemRange& range) {
  constexpr std::size_t most_problems = 4096;
  if (range.count() > most_problems) {
    fail(ErrorCode::invalid_argument, "report",
         to_string(range) + " holds " + std::to_string(range.count()) + " problems, and at most " +
             std::to_string(most_problems) + " are decided for a report; narrow it");
  }
  const ScopedPolicy limits(runtime.dispatcher(), KernelPolicy::from_limits(range.least().limits));
  std::map<std::string, int> numbers;
  std::vector<int> choice;
  for (std::size_t index = 0; index < range.count(); ++index) {
    const Decision decision = runtime.dispatcher().explain(range.at(index));
    choice.push_back(numbers.emplace(decision.kernel, static_cast<int>(numbers.size())).first->second);
  }
  std::vector<Problem> ends;
  for (const RangePart& part : parts_of(range.names(), choice)) {
    std::vector<std::int64_t> low, high;
    for (const SizeRange& name : part.names) low.push_back(name.low), high.push_back(name.high);
    ends.push_back(range.at(low));
    if (low != high) ends.push_back(range.at(high));
  }
  return ends;
}

}  // namespace xpuruntime
