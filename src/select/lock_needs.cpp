#include "select/lock_needs.h"

#include <sstream>

#include "core/problem_parser.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime {

Environment LockNeeds::part_of(const Environment& whole) const {
  if (everything) return whole;
  Environment part = whole;
  // How many threads there are is in the plan's token, where the plan depends on it; so is what follows from caches.
  std::erase_if(part.traits, [&](const auto& trait) {
    return !all_traits && trait.first != "cpu_features" && trait.first != "compute_capability";
  });
  std::erase_if(part.versions, [&](const auto& version) { return !versions.contains(version.first); });
  return part;
}

LockNeeds needs_of(const LockEntry& entry) {
  if (!entry.kernel_version.empty()) return {.everything = true};
  const Problem problem = least_problem(entry.problem);
  const auto row = find_in_catalogue(problem.op, entry.kernel, problem.device.type);
  if (!row) return {.everything = true};
  LockNeeds needs = {false, entry.plans_vary(), {"xpuruntime", "driver"}};
  std::istringstream libraries{std::string(row->libraries)};
  for (std::string library; libraries >> library;) needs.versions.insert(library);
  return needs;
}

LockNeeds operator|(LockNeeds a, const LockNeeds& b) {
  a.everything = a.everything || b.everything;
  a.all_traits = a.all_traits || b.all_traits;
  a.versions.insert(b.versions.begin(), b.versions.end());
  return a;
}

bool is_exact(const LockEntry& entry, const Problem& problem) {
  return has_ranges(entry.problem) ? parse_problem_range(entry.problem).contains(problem)
                                   : entry.problem == to_string(problem);
}

std::string text_of_choice(const LockEntry& entry) {
  const auto behind = [](const std::string& text) { return text.empty() ? "" : " " + text; };
  return entry.kernel + behind(entry.kernel_version) + behind(entry.plans_vary() ? "" : entry.plan);
}

std::string text_of_choice(const LockedEngine& engine) {
  return engine.engine + " " + engine.version + " on " + engine.target + " in " + engine.precision +
         ", optimize_level " + std::to_string(engine.optimize_level);
}

LimitedText without_limits(const std::string& text) {
  if (has_ranges(text)) {
    const ProblemRange range = parse_problem_range(text);
    const std::string limits = limits_text(range.least().limits);
    return {to_string(range.with_limits({})), limits.empty() ? "" : limits.substr(1)};
  }
  Problem problem = parse_problem(text);
  problem.limits = {};
  std::string plain = to_string(problem);
  // Limits are the end of a canonical text.
  std::string limits = text.size() > plain.size() ? text.substr(plain.size() + 1) : "";
  return {std::move(plain), std::move(limits)};
}

}  // namespace xpuruntime
