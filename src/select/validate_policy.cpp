#include "xpuruntime/select/validate_policy.h"

#include <algorithm>
#include <map>
#include <utility>

#include "select/never_runs.h"
#include "select/policy_check.h"
#include "select/policy_places.h"
#include "select/rule_implication.h"
#include "select/rule_index.h"
#include "select/rule_terms.h"
#include "tune/contender.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {
namespace {

constexpr std::size_t most_comparisons = 500'000;   // of a rule with another; some seconds
constexpr std::size_t most_sizes = 4096;            // of a range that are looked at,
constexpr std::size_t most_sizes_in_all = 200'000;  // and of all ranges; about a second
constexpr std::size_t fewest_sizes = 8;             // of each range behind that
constexpr std::size_t values_a_comparison = 256;    // pairs of values that cost as much

/// How many values a rule compares keys with.
std::size_t value_count(const PolicyRule& rule) {
  std::size_t count = 0;
  for (const auto& [key, tests] : rule.when) {
    for (const auto& [comparison, values] : tests) count += values.size();
  }
  return count;
}

class Validation {
 public:
  Validation(const KernelPolicy& policy, const KernelRegistry& registry, Device device)
      : policy_(policy), registry_(registry), device_(device), profile_(registry.devices().profile(device)) {}

  std::vector<PolicyFinding> run() {
    policy_.check();
    for (const auto& [op, preference] : policy_.preferences) examine(op, preference);
    for (std::size_t i = 0; i < policy_.rules.size(); ++i) examine_rule(i);
    if (comparisons_ > most_comparisons) {
      add(Severity::note, "rules", "too many to compare each with all before it: some hidden rules may not be listed");
    }
    if (sizes_ == most_sizes_in_all) {
      add(Severity::note, "rules", "so many ranges that only some sizes of the last ones were checked");
    }
    for (const auto& [op, requested] : policy_.precision) examine(op, requested);
    if (policy_.default_precision == DataType::int8) {
      add(Severity::warning, "default_precision",
          "nothing is quantized: calls on float tensors keep their dtype; give a float type, or leave it out");
    }
    return std::move(findings_);
  }

 private:
  void add(Severity severity, std::string field, std::string text) {
    findings_.push_back({severity, std::move(field), std::move(text)});
  }

  std::string here() const { return to_string(device_); }

  void examine(OpId op, const KernelPreference& preference) {
    const std::string field = "preferences." + std::string(to_string(op));
    if (!preference.force) return examine_kernels(op, preference.kernels, field);
    const auto& why = never(op, preference.kernels.front());
    if (!why) return;
    add(Severity::error, field,
        preference.kernels.front() + " is forced and never runs on " + here() + ": " + why->reason + ". Every " +
            std::string(to_string(op)) + " there fails; prefer it, or force another");
  }

  /// Each is asked once: a kernel's answer costs more than a rule.
  const std::optional<NeverRuns>& never(OpId op, const std::string& kernel) {
    const auto [found, added] = never_.try_emplace({op, kernel});
    if (added) found->second = never_runs(registry_, device_, op, kernel, policy_.deterministic.value_or(false));
    return found->second;
  }

  /// A preference that is only for other devices, or has a second choice, is not a mistake; one that never applies is.
  void examine_kernels(OpId op, const std::vector<std::string>& kernels, const std::string& field) {
    std::vector<NeverRuns> reasons;
    for (const std::string& kernel : kernels) {
      if (auto why = never(op, kernel)) {
        why->reason = kernel + " never runs on " + here() + ": " + why->reason;
        reasons.push_back(std::move(*why));
      }
    }
    const bool others_only = std::all_of(reasons.begin(), reasons.end(), [](const auto& r) { return r.other_device; });
    const bool nothing_left = reasons.size() == kernels.size() && !others_only;
    for (const NeverRuns& why : reasons) add(nothing_left ? Severity::warning : Severity::note, field, why.reason);
  }

  void examine_rule(std::size_t index) {
    const PolicyRule& rule = policy_.rules[index];
    const std::string field = "rules[" + std::to_string(index) + "]";
    if (const std::string key = affords(rule, rule) ? contradiction_in(rule) : ""; !key.empty()) {
      return add(Severity::warning, field + ".when." + key, "no problem can match: its conditions exclude each other");
    }
    if (under_preference(rule, field)) return;
    if (const auto wider = hiding(rule, index)) return add(Severity::warning, field, hidden_by(*wider));
    if (const std::string key = excluded_here(rule); !key.empty()) {
      return add(Severity::note, field + ".when." + key, "never matches on " + here());
    }
    examine_kernels(rule.op, rule.use, field + ".use");
    if (!rule.range.empty()) examine_range(rule, field + ".range");
  }

  /// A rule for a range promises its kernel throughout.
  void examine_range(const PolicyRule& rule, const std::string& field) {
    const ProblemRange range = parse_problem_range(rule.range);
    if (range.least().device.type != device_.type) return add(Severity::note, field, "never matches on " + here());
    for (const auto& kernel : registry_.kernels(rule.op, device_.type)) {
      if (kernel->name() != rule.use.front()) continue;
      const std::size_t most = std::max(fewest_sizes, std::min(most_sizes, most_sizes_in_all - sizes_));
      const std::size_t step = (range.count() + most - 1) / most;
      for (std::size_t index = 0; index < range.count(); index += step) {
        sizes_ = std::min(sizes_ + 1, most_sizes_in_all);
        Contender asked{.kernel = kernel};
        asked.refuse_unless_runs(range.at(index), profile_, registry_.kernels(OpId::copy, device_.type));
        if (asked.usable()) continue;
        return add(Severity::warning, field,
                   rule.use.front() + " cannot run all of it: at " + sizes_text(range, range.sizes_at(index)) + ", " +
                       asked.row.reason + "; split the range there, or tune it again");
      }
    }
  }

  /// Counts what a comparison of two rules costs; false: it would be too much by now.
  bool affords(const PolicyRule& a, const PolicyRule& b) {
    comparisons_ += 1 + value_count(a) * value_count(b) / values_a_comparison;
    if (!a.range.empty() && !b.range.empty()) comparisons_ += 3;  // both are parsed
    return comparisons_ <= most_comparisons;
  }

  /// The first rule before this one that takes all that it would take.
  std::optional<std::size_t> hiding(const PolicyRule& rule, std::size_t index) {
    const RuleIndex& rules = policy_.rules.index();
    comparisons_ += rules.groups(rule.op);
    if (comparisons_ > most_comparisons) return {};
    const auto fact_of = [&](const std::string& key, const Term& term) {
      const auto own = rule.when.find(key);
      return own == rule.when.end() ? std::nullopt : only_fact(term, own->second);
    };
    std::optional<std::size_t> wider;
    rules.any_candidate(rule.op, fact_of, [&](std::size_t i) {
      if (i >= index || !affords(rule, policy_.rules[i])) return true;
      if (implies(rule, policy_.rules[i])) wider = i;
      return wider.has_value();
    });
    return wider;
  }

  /// A forced kernel runs or the call fails: no rule is asked. A preferred one only comes first.
  bool under_preference(const PolicyRule& rule, const std::string& field) {
    const auto found = policy_.preferences.find(rule.op);
    if (found == policy_.preferences.end()) return false;
    const std::string op(to_string(rule.op));
    if (found->second.force) {
      add(Severity::warning, field, "never used: " + found->second.kernels.front() + " is forced for " + op);
      return true;
    }
    add(Severity::note, field, "used only if none of the kernels preferred for " + op + " can run");
    return false;
  }

  std::string hidden_by(std::size_t index) const {
    const std::string& name = policy_.rules[index].name;
    return "every problem that matches it matches rules[" + std::to_string(index) + "]" +
           (name.empty() ? "" : " (\"" + shown(name) + "\")") +
           " before; put the narrower rule first, or its kernels into the use of the other";
  }

  /// The first test of the device that this one fails.
  std::string excluded_here(const PolicyRule& rule) const {
    Problem nothing;
    nothing.op = rule.op;
    nothing.device = device_;
    for (const auto& [key, tests] : rule.when) {
      if (!key.starts_with("device.")) continue;
      const Fact fact = parse_term(rule.op, key).read(nothing, profile_);
      for (const auto& [comparison, values] : tests) {
        if (!holds(fact, comparison, values)) return key;
      }
    }
    return {};
  }

  void examine(OpId op, const DirectionPrecisions& requested) {
    const std::string field = "precision." + std::string(to_string(op));
    examine(op, requested.forward, Direction::forward, field);
    examine(op, requested.backward, Direction::backward, field);
  }

  void examine(OpId op, const std::optional<RequestedPrecision>& requested, Direction direction,
               const std::string& field) {
    if (!requested || requested->precision != OpPrecision::custom) return;
    if (any_kernel_takes(registry_, device_, op, requested->custom, direction)) return;
    // An op without kernels in that direction lacks more than a precision.
    if (!any_kernel_takes(registry_, device_, op, DataType::float32, direction)) return;
    const std::string way = direction == Direction::forward ? "forward" : "backward";
    add(Severity::warning, field,
        "no kernel here computes " + std::string(to_string(op)) + " " + way + " in " +
            std::string(to_string(requested->custom)) + "; the next dtype without loss is taken");
  }

  const KernelPolicy& policy_;
  const KernelRegistry& registry_;
  const Device device_;
  const DeviceProfile& profile_;
  std::vector<PolicyFinding> findings_ = {};
  std::map<std::pair<OpId, std::string>, std::optional<NeverRuns>> never_ = {};
  std::size_t comparisons_ = 0;
  std::size_t sizes_ = 0;  // of ranges that were looked at
};

}  // namespace

std::string_view to_string(Severity severity) {
  constexpr std::string_view names[] = {"error", "warning", "note"};
  return names[static_cast<std::size_t>(severity)];
}

std::vector<PolicyFinding> validate_policy(const KernelPolicy& policy, const KernelRegistry& registry, Device device) {
  return Validation(policy, registry, device).run();
}

std::vector<PolicyFinding> validate_policy_file(const std::string& path, const KernelRegistry& registry,
                                                Device device) {
  const std::string text = read_policy_text(path);
  std::vector<PolicyFinding> findings = validate_policy(policy_in_file(text, path), registry, device);
  const PolicyPlaces places(text);
  for (PolicyFinding& finding : findings) {
    const auto place = places.find(finding.field);
    if (place) finding.line = place->line, finding.column = place->column;
  }
  return findings;
}

}  // namespace xpuruntime
