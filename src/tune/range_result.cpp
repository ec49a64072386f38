#include "xpuruntime/tune/range_result.h"

#include <algorithm>

namespace xpuruntime {

std::string RangeResult::summary(std::string_view total_budget, std::string_view problem_budget) const {
  const auto count = [](std::size_t number, const std::string& of) {
    return std::to_string(number) + " " + of + (number == 1 ? "" : "s");
  };
  std::string text = count(parts.size(), "part") + " from " + std::to_string(measured.size()) + " of " +
                     count(problems, "problem") + " measured";
  if (cut_short) text += "; cut short by " + std::string(total_budget);
  for (const auto& [name, shown] : {std::pair("total_budget_s", total_budget), {"problem_budget_s", problem_budget}}) {
    const auto ended = std::count_if(measured.begin(), measured.end(), [&budget = name](const TuneResult& result) {
      return result.cut_short && result.cut_by == budget;
    });
    if (ended > 0) text += "; " + count(static_cast<std::size_t>(ended), "race") + " ended by " + std::string(shown);
  }
  if (guessed > 0) text += "; " + std::to_string(guessed) + " have the kernel of the nearest one measured";
  if (named_by_policy > 0) text += "; " + std::to_string(named_by_policy) + " are left alone: " + named_because;
  const std::size_t missing = problems - covered - named_by_policy;
  if (missing > 0) text += (complete ? "; no kernel was found for " : "; no choice yet for ") + std::to_string(missing);
  if (!complete && !cut_short) text += "; it was stopped before it was done";
  return text;
}

}  // namespace xpuruntime
