#include "xpuruntime/select/range_rule.h"

#include <algorithm>

#include "select/lock_ranges.h"
#include "select/rule_ranges.h"
#include "tune/range_search.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

std::size_t limits_in(const PolicyRule& rule) {
  const Limits limits = parse_problem_range(rule.range).least().limits;
  return static_cast<std::size_t>(limits.threads.has_value()) + limits.workspace_bytes.has_value();
}

bool holds_sizes(const ProblemRange& part, std::span<const std::int64_t> sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < part.names()[i].low || sizes[i] > part.names()[i].high) return false;
  }
  return true;
}

/// Whether the new ones, which are asked first, hold every size of a range: it would never be asked again.
bool is_hidden_by(const std::vector<ProblemRange>& parts, const ProblemRange& old) {
  for (std::size_t index = 0; index < old.count(); ++index) {
    const std::vector<std::int64_t> sizes = old.sizes_at(index);
    if (std::none_of(parts.begin(), parts.end(), [&](const ProblemRange& part) { return holds_sizes(part, sizes); }))
      return false;
  }
  return true;
}

/// Whether a rule says nothing but which kernel runs a range.
bool is_plain(const PolicyRule& rule) {
  if (rule.range.empty() || rule.use.size() != 1) return false;
  return rule == range_rule(parse_problem_range(rule.range), rule.use.front());
}

/// Whether no problem is in both, by the dtypes and extents of their inputs. False where that is not certain.
bool are_apart(const ProblemRange& a, const ProblemRange& b) {
  const Problem &low_a = a.least(), &low_b = b.least();
  if (low_a.op != low_b.op || low_a.direction != low_b.direction) return true;
  if (low_a.inputs.size() != low_b.inputs.size()) return true;
  const Problem high_a = a.at(a.count() - 1), high_b = b.at(b.count() - 1);
  for (std::size_t i = 0; i < low_a.inputs.size(); ++i) {
    if (low_a.inputs[i].dtype != low_b.inputs[i].dtype) return true;
    if (low_a.inputs[i].shape.size() != low_b.inputs[i].shape.size()) return true;
    for (std::size_t d = 0; d < low_a.inputs[i].shape.size(); ++d) {
      if (high_a.inputs[i].shape[d] < low_b.inputs[i].shape[d]) return true;
      if (high_b.inputs[i].shape[d] < low_a.inputs[i].shape[d]) return true;
    }
  }
  return false;
}

/// Whether a rule may hold some problem of a range.
bool may_hold(const PolicyRule& rule, const ProblemRange& range) {
  if (rule.op != range.least().op) return false;
  return rule.range.empty() || !are_apart(range, parse_problem_range(rule.range));
}

/// Rules for the parts of a range, of which the first that holds a size decides it, as few as say the same.
std::vector<PolicyRule> as_few(const ProblemRange& range, const std::vector<PolicyRule>& rules) {
  std::vector<ProblemRange> parts;
  std::vector<std::string> kernels;
  for (const PolicyRule& rule : rules) {
    parts.push_back(parse_problem_range(rule.range));
    kernels.push_back(rule.use.front());
  }
  std::vector<int> choice(range.count(), -1);
  for (std::size_t index = 0; index < choice.size(); ++index) {
    const std::vector<std::int64_t> sizes = range.sizes_at(index);
    const auto first =
        std::find_if(parts.begin(), parts.end(), [&](const ProblemRange& part) { return holds_sizes(part, sizes); });
    if (first == parts.end()) continue;
    const auto& kernel = kernels[static_cast<std::size_t>(first - parts.begin())];
    choice[index] = static_cast<int>(std::find(kernels.begin(), kernels.end(), kernel) - kernels.begin());
  }
  std::vector<PolicyRule> out;
  for (const RangePart& part : parts_of(range.names(), choice)) {
    out.push_back(range_rule(range.with_names(part.names), kernels[static_cast<std::size_t>(part.kernel)]));
  }
  return out;
}

/// Joins the new rules with those for other parts of the range among `old`, which are asked behind them. One stays
/// where a rule that is asked before it may hold some of its sizes too.
std::vector<PolicyRule> join(const ProblemRange& range, std::vector<PolicyRule> rules, std::vector<PolicyRule>& old) {
  const auto is_ours = [&](const PolicyRule& rule) {
    return is_plain(rule) && range.contains(parse_problem_range(rule.range));
  };
  if (rules.empty() || !std::all_of(rules.begin(), rules.end(), is_ours)) return rules;
  std::vector<PolicyRule> all = rules, others;
  auto rule = old.begin();
  for (; rule != old.end(); ++rule) {
    const bool ours = is_ours(*rule);
    if (!ours && may_hold(*rule, range)) break;
    (ours ? all : others).push_back(*rule);
  }
  std::vector<PolicyRule> fewer = as_few(range, all);
  if (fewer.size() >= all.size()) return rules;
  others.insert(others.end(), rule, old.end());
  old = std::move(others);
  return fewer;
}

/// The range of two rules that one rule may stand for.
std::optional<ProblemRange> joined(const PolicyRule& a, const PolicyRule& b) {
  if (a.op != b.op || a.use != b.use || !is_plain(a) || !is_plain(b)) return std::nullopt;
  return joined(parse_problem_range(a.range), parse_problem_range(b.range));
}

/// Widens new rules by those among `old` that continue them beyond the range, by the same rule.
void join_neighbours(std::vector<PolicyRule>& rules, std::vector<PolicyRule>& old) {
  for (PolicyRule& rule : rules) {
    for (auto at = old.begin(); at != old.end();) {
      const std::optional<ProblemRange> both = joined(rule, *at);
      const auto asked_before = [&](const PolicyRule& other) {
        return &other != &rule && may_hold(other, parse_problem_range(at->range));
      };
      if (!both || std::any_of(rules.begin(), rules.end(), asked_before) ||
          std::any_of(old.begin(), at, asked_before)) {
        ++at;
        continue;
      }
      rule = range_rule(*both, rule.use.front());
      old.erase(at);
      at = old.begin();  // another may continue it now
    }
  }
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
  fail(ErrorCode::invalid_argument, "PolicyRule", "the range is not in its canonical form; write " + to_string(range));
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
  std::vector<PolicyRule> rest(behind, all.end());
  all.erase(behind, all.end());
  rules = join(range, std::move(rules), rest);
  join_neighbours(rules, rest);
  all.insert(all.end(), rules.begin(), rules.end());
  all.insert(all.end(), rest.begin(), rest.end());
  policy.rules = std::move(all);
  return policy;
}

}  // namespace xpuruntime
