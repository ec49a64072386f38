#include "cli/tune_ranges.h"

#include <algorithm>

#include "cli/table.h"

namespace xpuruntime::cli {
namespace {

std::string sizes_of(const ProblemRange& range) {
  const std::string text = to_string(range);
  return text.substr(text.rfind(" where ") + 7);
}

}  // namespace

void propose_from_log(const Context& context, bool use, std::vector<Problem>& problems,
                      std::vector<ProblemRange>& ranges) {
  const std::vector<ProblemRange> found = propose_ranges(problems);
  if (found.empty() && use)
    context.note("no range was found: --ranges takes at least 4 problems that differ in one size alone");
  if (found.empty()) return;
  const auto in_one = [&](const Problem& problem) {
    return std::any_of(found.begin(), found.end(), [&](const ProblemRange& range) { return range.contains(problem); });
  };
  const auto inside = static_cast<std::size_t>(std::count_if(problems.begin(), problems.end(), in_one));
  context.note(
      std::to_string(inside) + " of " + std::to_string(problems.size()) + " problems differ in one size alone" +
      (use ? "; they are tuned as ranges:" : "; --ranges tunes them as ranges, which covers other sizes too:"));
  for (const ProblemRange& range : found) context.note("  " + to_string(range));
  if (!use) return;
  std::erase_if(problems, in_one);
  ranges.insert(ranges.end(), found.begin(), found.end());
}

std::string ranges_text(const std::vector<RangeResult>& results, const Painter& paint) {
  std::string text;
  for (const RangeResult& result : results) {
    text += to_string(result.range) + "\n";
    Table table({"sizes", "tuned"});
    for (const TunedPart& part : result.parts) table.add({sizes_of(part.range), part.kernel});
    text += table.to_text(paint) + result.summary("--budget", "--per-problem") + "\n\n";
  }
  return text;
}

Json ranges_json(const std::vector<RangeResult>& results) {
  Json list = Json::array();
  for (const RangeResult& result : results) {
    Json parts = Json::array();
    for (const TunedPart& part : result.parts) {
      parts.push_back({{"range", to_string(part.range)}, {"kernel", part.kernel}});
    }
    Json measured = Json::array();
    for (const TuneResult& one : result.measured) measured.push_back(to_string(one.problem));
    list.push_back({{"range", to_string(result.range)},
                    {"parts", parts},
                    {"problems", result.problems},
                    {"covered", result.covered},
                    {"guessed", result.guessed},
                    {"undecided", result.undecided},
                    {"too_large", result.too_large},
                    {"named_by_policy", result.named_by_policy},
                    {"named_because", result.named_because.empty() ? Json(nullptr) : Json(result.named_because)},
                    {"measured", measured},
                    {"complete", result.complete},
                    {"cut_short", result.cut_short},
                    {"cut_by", result.cut_by.empty() ? Json(nullptr) : Json(result.cut_by)},
                    {"spent_s", result.spent_s}});
  }
  return list;
}

}  // namespace xpuruntime::cli
