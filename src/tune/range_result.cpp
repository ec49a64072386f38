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
  const auto add = [&](std::size_t number, const char* one, const char* more) {
    if (number > 0) text += "; " + std::to_string(number) + " " + (number == 1 ? one : more);
  };
  add(guessed, "has the kernel of the measured sizes around it", "have the kernel of the measured sizes around them");
  add(undecided, "stays with the default", "stay with the default");
  add(too_large, "is left out: its tensors do not fit in memory", "are left out: their tensors do not fit in memory");
  add(named_by_policy, "is left alone: ", "are left alone: ");
  text += named_because;
  const std::size_t missing = problems - covered - undecided - too_large - named_by_policy;
  if (missing > 0) text += (complete ? "; no kernel was found for " : "; no choice yet for ") + std::to_string(missing);
  if (!complete && !cut_short) text += "; it was stopped before it was done";
  return text;
}

}  // namespace xpuruntime
