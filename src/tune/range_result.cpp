#include "xpuruntime/tune/range_result.h"

namespace xpuruntime {

std::string RangeResult::summary() const {
  const auto count = [](std::size_t number, const std::string& of) {
    return std::to_string(number) + " " + of + (number == 1 ? "" : "s");
  };
  std::string text = count(parts.size(), "part") + " from " + std::to_string(measured.size()) + " of " +
                     count(problems, "problem") + " measured";
  if (guessed > 0) text += "; " + std::to_string(guessed) + " have the kernel of the nearest one measured";
  if (named_by_policy > 0) text += "; " + std::to_string(named_by_policy) + " are left alone: " + named_because;
  const std::size_t missing = problems - covered - named_by_policy;
  if (missing > 0) text += (complete ? "; no kernel was found for " : "; no choice yet for ") + std::to_string(missing);
  if (!complete) text += "; it was stopped before it was done";
  return text;
}

}  // namespace xpuruntime
