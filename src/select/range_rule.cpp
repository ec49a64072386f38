#include "xpuruntime/select/range_rule.h"

#include <algorithm>

#include "select/rule_ranges.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

std::size_t limits_in(const PolicyRule& rule) {
  const Limits limits = parse_problem_range(rule.range).least().limits;
  return static_cast<std::size_t>(limits.threads.has_value()) + limits.workspace_bytes.has_value();
}

/// Whether the new ones, which are asked first, hold every size of a range: it would never be asked again.
bool is_hidden_by(const std::vector<ProblemRange>& parts, const ProblemRange& old) {
  for (std::size_t index = 0; index < old.count(); ++index) {
    const std::vector<std::int64_t> sizes = old.sizes_at(index);
    const auto holds = [&](const ProblemRange& part) {
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        if (sizes[i] < part.names()[i].low || sizes[i] > part.names()[i].high) return false;
      }
      return true;
    };
    if (std::none_of(parts.begin(), parts.end(), holds)) return false;
  }
  return true;
}

}  // namespace

bool in_range(const ProblemRange& range, const Problem& problem, const DeviceProfile& profile) {
  const auto sizes = range.sizes_of(problem);
  if (!sizes || range.least().device.type != profile.type) return false;
  Problem there;
  try {
    there = range.at(*sizes);
  } catch (const Error&) {
    return false;  // sizes that do not fit together
  }
  const auto align = [](std::vector<TensorSpec>& to, const std::vector<TensorSpec>& from) {
    for (std::size_t i = 0; i < std::min(to.size(), from.size()); ++i) to[i].alignment = from[i].alignment;
  };
  align(there.inputs, problem.inputs);
  align(there.outputs, problem.outputs);
  there.device = problem.device;
  if (!there.limits.threads) there.limits.threads = problem.limits.threads;
  if (!there.limits.workspace_bytes) there.limits.workspace_bytes = problem.limits.workspace_bytes;
  return there == problem;
}

void check_range(const PolicyRule& rule) {
  const ProblemRange range = parse_problem_range(rule.range);
  if (range.least().op != rule.op) {
    fail(ErrorCode::invalid_argument, "PolicyRule",
         "the range is of " + std::string(to_string(range.least().op)) + ", the rule of " +
             std::string(to_string(rule.op)) + "; give both the same op");
  }
  if (to_string(range) == rule.range) return;
  fail(ErrorCode::invalid_argument, "PolicyRule",
       "the range is spelled otherwise than it prints; write " + to_string(range));
}

std::string place_in_range(const PolicyRule& rule, const Problem& problem) {
  if (rule.range.empty()) return {};
  const ProblemRange range = parse_problem_range(rule.range);
  const auto sizes = range.sizes_of(problem);
  return sizes ? " at " + sizes_text(range, *sizes) : "";
}

PolicyRule range_rule(const ProblemRange& range, const std::string& kernel) {
  PolicyRule rule;
  rule.op = range.least().op;
  rule.range = to_string(range);
  rule.use = {kernel};
  return rule;
}

std::vector<PolicyRule> range_rules(const RangeResult& result) {
  std::vector<PolicyRule> rules;
  for (const TunedPart& part : result.parts) rules.push_back(range_rule(part.range, part.kernel));
  return rules;
}

KernelPolicy with_range_rules(KernelPolicy policy, const ProblemRange& range, std::vector<PolicyRule> rules) {
  std::vector<ProblemRange> parts;
  for (const PolicyRule& rule : rules) {
    ProblemRange part = parse_problem_range(rule.range);
    if (rule.when.empty() && range.contains(part)) parts.push_back(std::move(part));
  }
  const auto is_replaced = [&](const PolicyRule& old) {
    if (old.range.empty()) return false;
    const ProblemRange sizes = parse_problem_range(old.range);
    return range.contains(sizes) && is_hidden_by(parts, sizes);
  };
  std::vector<PolicyRule> all;
  for (const PolicyRule& old : policy.rules) {
    if (!is_replaced(old)) all.push_back(old);
  }
  // A limit that is not there cannot be asked for: a range that asks for more comes first.
  const std::size_t limits = rules.empty() ? 0 : limits_in(rules.front());
  const auto behind = std::find_if(all.begin(), all.end(), [&](const PolicyRule& old) {
    const bool exact = old.range.empty() && old.when.contains("inputs.0.shape");
    return !exact && (old.range.empty() || limits_in(old) <= limits);
  });
  all.insert(behind, rules.begin(), rules.end());
  policy.rules = std::move(all);
  return policy;
}

}  // namespace xpuruntime
