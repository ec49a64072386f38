#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "select/rule_terms.h"
#include "xpuruntime/core/problem_range.h"
#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

/// Finds the rules that may match without trying all of them. Rules of an op that ask for equality of the same keys
/// stand together, sorted by the values that they ask for: one look finds those that fit a problem. The rules stay
/// where they are for as long as the index is used.
class RuleIndex {
 public:
  using FactOf = std::function<std::optional<Fact>(const std::string& key, const Term& term)>;

  explicit RuleIndex(std::span<const PolicyRule> rules);

  /// Calls `use` with each rule whose tests for equality all hold, in order, until it returns true; `fact_of` gives
  /// nothing where a key has no single fact. Returns whether one did.
  bool any_candidate(OpId op, const FactOf& fact_of, const std::function<bool(std::size_t rule)>& use) const;

  /// How many looks `any_candidate` takes before the first.
  std::size_t groups(OpId op) const;

  /// Calls `use` with each rule that matches, in order, until it returns true; and so of a rule that throws while it is
  /// asked, with the text. Returns whether one did.
  bool any_match(const Problem& problem, const DeviceProfile& profile,
                 const std::function<bool(std::size_t rule, const std::string& thrown)>& use) const;

 private:
  struct Key {
    std::string name = {};
    Term term = {};
  };
  /// Rules that ask for equality of these keys and no others, by what they ask for.
  struct Group {
    std::vector<std::size_t> keys = {};
    std::map<std::string, std::vector<std::size_t>> rules = {};
  };
  struct OfOp {
    std::vector<Key> keys = {};
    std::map<std::string, std::size_t> places = {};  // of keys, by name
    std::vector<Group> groups = {};
    std::map<std::vector<std::size_t>, std::size_t> group_of = {};  // by keys
  };
  struct Test {
    std::size_t key = 0;
    Comparison comparison = Comparison::equal;
    std::span<const RuleValue> values = {};
  };

  void add(std::size_t index);
  static std::size_t place_of(OfOp& of_op, OpId op, const std::string& key);

  std::span<const PolicyRule> rules_;
  std::map<OpId, OfOp> ops_ = {};
  std::vector<std::optional<std::vector<Test>>> tests_ = {};  // by rule; nothing: it is asked itself
  std::map<std::size_t, ProblemRange> ranges_ = {};           // of the rules that have one
};

}  // namespace xpuruntime
