#include "select/rule_index.h"

#include <algorithm>
#include <utility>

#include "select/rule_ranges.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

template <class T>
void append_bytes(std::string& out, const T* values, std::size_t count) {
  out.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}

/// Adds a value so that no two values, and no two rows of values, look alike.
struct AppendValue {
  std::string& out;

  void operator()(const std::monostate&) const {}
  void operator()(bool value) const { out += value ? "T" : "F"; }
  void operator()(std::int64_t value) const { tagged('i', &value, 1); }
  void operator()(double value) const {
    value += 0.0;  // minus zero is equal to zero
    tagged('d', &value, 1);
  }
  void operator()(const std::string& value) const { tagged('s', value.data(), value.size()); }
  void operator()(const std::vector<std::int64_t>& value) const { tagged('l', value.data(), value.size()); }
  void operator()(const std::vector<std::string>&) const {}  // no rule asks for equality of these

  template <class T>
  void tagged(char tag, const T* values, std::size_t count) const {
    out += tag;
    append_bytes(out, &count, 1);
    append_bytes(out, values, count);
  }
};

/// The one value that a key must have, if the tests name one.
const RuleValue* only_value(const Term& term, const RuleTests& tests) {
  for (const Comparison comparison : {Comparison::equal, Comparison::in}) {
    const auto found = tests.find(comparison);
    if (found == tests.end() || found->second.size() != 1) continue;
    // One number stands for a list of any length.
    const bool one_for_all = term.kind == TermKind::integers && std::holds_alternative<std::int64_t>(found->second[0]);
    if (!one_for_all) return &found->second[0];
  }
  return nullptr;
}

/// What cannot be read is not there.
Fact read(const Term& term, const Problem& problem, const DeviceProfile& profile) {
  try {
    return term.read(problem, profile);
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

RuleIndex::RuleIndex(std::span<const PolicyRule> rules) : rules_(rules) {
  tests_.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) add(i);
}

std::size_t RuleIndex::place_of(OfOp& of_op, OpId op, const std::string& key) {
  const auto found = of_op.places.find(key);
  if (found != of_op.places.end()) return found->second;
  of_op.keys.push_back({key, parse_term(op, key)});
  return of_op.places[key] = of_op.keys.size() - 1;
}

void RuleIndex::add(std::size_t index) {
  const PolicyRule& rule = rules_[index];
  OfOp& of_op = ops_[rule.op];
  std::vector<Test> tests;
  std::vector<std::size_t> keys;
  std::string values;
  try {
    check_conditions(rule);
    if (!rule.range.empty()) ranges_.emplace(index, parse_problem_range(rule.range));
    for (const auto& [name, key_tests] : rule.when) {
      const std::size_t key = place_of(of_op, rule.op, name);
      for (const auto& [comparison, operands] : key_tests) tests.push_back({key, comparison, operands});
      const RuleValue* const value = only_value(of_op.keys[key].term, key_tests);
      if (value == nullptr) continue;
      keys.push_back(key);
      std::visit(AppendValue{values}, *value);
    }
    tests_[index] = std::move(tests);
  } catch (const Error&) {
    keys.clear();  // a rule that nobody checked: it says what is wrong when it is asked
    values.clear();
  }
  const auto [found, added] = of_op.group_of.emplace(keys, of_op.groups.size());
  if (added) of_op.groups.push_back({std::move(keys)});
  of_op.groups[found->second].rules[values].push_back(index);
}

std::size_t RuleIndex::groups(OpId op) const {
  const auto found = ops_.find(op);
  return found == ops_.end() ? 0 : found->second.groups.size();
}

bool RuleIndex::any_candidate(OpId op, const FactOf& fact_of, const std::function<bool(std::size_t)>& use) const {
  const auto found = ops_.find(op);
  if (found == ops_.end()) return false;
  std::vector<std::span<const std::size_t>> lists;  // none is empty, each is in order
  for (const Group& group : found->second.groups) {
    std::string values;
    const bool whole = std::all_of(group.keys.begin(), group.keys.end(), [&](std::size_t key) {
      const auto fact = fact_of(found->second.keys[key].name, found->second.keys[key].term);
      if (!fact || std::holds_alternative<std::monostate>(*fact)) return false;
      std::visit(AppendValue{values}, *fact);
      return true;
    });
    const auto rules = whole ? group.rules.find(values) : group.rules.end();
    if (rules != group.rules.end()) lists.emplace_back(rules->second);
  }
  // Merged as far as they are asked for: most who ask stop at one of the first.
  const auto later = [](const auto& a, const auto& b) { return a.front() > b.front(); };
  std::make_heap(lists.begin(), lists.end(), later);
  while (!lists.empty()) {
    std::pop_heap(lists.begin(), lists.end(), later);
    if (use(lists.back().front())) return true;
    lists.back() = lists.back().subspan(1);
    lists.back().empty() ? lists.pop_back() : std::push_heap(lists.begin(), lists.end(), later);
  }
  return false;
}

bool RuleIndex::any_match(const Problem& problem, const DeviceProfile& profile,
                          const std::function<bool(std::size_t, const std::string&)>& use) const {
  const auto found = ops_.find(problem.op);
  if (found == ops_.end()) return false;
  const OfOp& of_op = found->second;
  std::vector<std::optional<Fact>> facts(of_op.keys.size());  // each is read once
  const auto fact_at = [&](std::size_t key) -> const Fact& {
    if (!facts[key]) facts[key] = read(of_op.keys[key].term, problem, profile);
    return *facts[key];
  };
  const auto by_name = [&](const std::string& name, const Term&) { return fact_at(of_op.places.at(name)); };
  return any_candidate(problem.op, by_name, [&](std::size_t index) {
    std::string thrown;
    bool matches = false;
    try {
      const auto test_holds = [&](const Test& test) { return holds(fact_at(test.key), test.comparison, test.values); };
      const auto range = ranges_.find(index);
      matches = !tests_[index] ? rules_[index].matches(problem, profile)
                               : (range == ranges_.end() || in_range(range->second, problem, profile)) &&
                                     std::all_of(tests_[index]->begin(), tests_[index]->end(), test_holds);
    } catch (...) {
      thrown = exception_text();
    }
    return (matches || !thrown.empty()) && use(index, thrown);
  });
}

}  // namespace xpuruntime
