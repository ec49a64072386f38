#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "xpuruntime/select/policy_rule.h"

namespace xpuruntime {

class RuleIndex;

/// The rules of a policy, in the order they are tried. Copies share them until one is changed, so that a policy with
/// many rules is copied, merged into one without rules and put in force again as cheaply as one with few.
class RuleList {
 public:
  using value_type = PolicyRule;
  using const_iterator = std::vector<PolicyRule>::const_iterator;
  using iterator = const_iterator;

  RuleList() = default;
  RuleList(std::vector<PolicyRule> rules);
  RuleList(std::initializer_list<PolicyRule> rules) : RuleList(std::vector<PolicyRule>(rules)) {}
  RuleList(const RuleList& other);
  RuleList& operator=(const RuleList& other);
  RuleList(RuleList&&) noexcept = default;
  RuleList& operator=(RuleList&&) noexcept = default;

  const std::vector<PolicyRule>& all() const;
  const_iterator begin() const { return all().begin(); }
  const_iterator end() const { return all().end(); }
  std::size_t size() const { return all().size(); }
  bool empty() const { return all().empty(); }
  const PolicyRule& operator[](std::size_t index) const { return all()[index]; }
  const PolicyRule& at(std::size_t index) const { return all().at(index); }
  const PolicyRule& front() const { return all().front(); }
  const PolicyRule& back() const { return all().back(); }

  void push_back(PolicyRule rule);
  /// Puts rules before these.
  void prepend(const RuleList& rules);
  void clear() { held_.reset(); }

  bool operator==(const RuleList& other) const;
  /// Whether one is a copy of the other that was not changed; else they may still be equal.
  bool same_as(const RuleList& other) const { return held_ == other.held_; }

  // What is found out about the rules is found out once for all copies.

  /// PolicyRule::check of each.
  void check() const;
  /// As JSON in one line: what tells one list from another.
  const std::string& text() const;
  /// Finds those that match; for the selection.
  const RuleIndex& index() const;

 private:
  struct Held;
  std::vector<PolicyRule>& own();

  std::shared_ptr<Held> held_;
};

}  // namespace xpuruntime
