#include "select/rule_implication.h"

#include <algorithm>
#include <limits>
#include <optional>

#include "select/rule_terms.h"
#include "xpuruntime/core/problem_range.h"

namespace xpuruntime {
namespace {

using Integers = std::vector<std::int64_t>;

constexpr std::uint64_t most_listed = 256;  // a range of whole numbers up to this long is looked at one by one

bool passes(const Fact& fact, const RuleTests& tests) {
  return std::all_of(tests.begin(), tests.end(),
                     [&](const auto& test) { return holds(fact, test.first, test.second); });
}

/// The numbers that a key, or each element of a list, lies between.
template <class T>
struct Range {
  static constexpr bool has_ends = !std::numeric_limits<T>::has_infinity;
  T low = has_ends ? std::numeric_limits<T>::lowest() : -std::numeric_limits<T>::infinity();
  T high = has_ends ? std::numeric_limits<T>::max() : std::numeric_limits<T>::infinity();
  bool open_low = false;  // low itself is outside
  bool open_high = false;

  void raise(T to, bool open) {
    if (to > low || (to == low && open)) open_low = open, low = to;
  }
  void lower(T to, bool open) {
    if (to < high || (to == high && open)) open_high = open, high = to;
  }
  bool empty() const { return low > high || (low == high && (open_low || open_high)); }
  bool within(const Range& other) const {
    const bool above = low > other.low || (low == other.low && (open_low || !other.open_low));
    const bool below = high < other.high || (high == other.high && (open_high || !other.open_high));
    return above && below;
  }
};

template <class T>
void narrow_range(Range<T>& range, Comparison comparison, const RuleValue& value) {
  const T* const bound = std::get_if<T>(&value);
  if (bound == nullptr) return;
  const bool open = comparison == Comparison::less || comparison == Comparison::greater;
  if (comparison == Comparison::less || comparison == Comparison::at_most) range.lower(*bound, open);
  if (comparison == Comparison::greater || comparison == Comparison::at_least) range.raise(*bound, open);
  if (comparison == Comparison::equal) range.raise(*bound, false), range.lower(*bound, false);
}

/// Whole numbers have no open ends: above 3 is from 4 on.
void close_ends(Range<double>&) {}
void close_ends(Range<std::int64_t>& range) {
  if (range.open_low && range.low < std::numeric_limits<std::int64_t>::max()) ++range.low, range.open_low = false;
  if (range.open_high && range.high > std::numeric_limits<std::int64_t>::lowest())
    --range.high, range.open_high = false;
}

template <class T>
Range<T> range_of(const RuleTests& tests) {
  Range<T> range;
  for (const auto& [comparison, values] : tests) narrow_range(range, comparison, values.front());
  close_ends(range);
  return range;
}

std::optional<std::int64_t> divisor_of(const RuleTests& tests) {
  const auto found = tests.find(Comparison::multiple_of);
  return found == tests.end() ? std::nullopt : std::optional(std::get<std::int64_t>(found->second.front()));
}

// ---- keys that can be only so many things ----

/// The facts that a value of == or `in` stands for; nothing where they are without number.
std::optional<Fact> fact_of(const Term& term, const RuleValue& value) {
  if (const auto* all = std::get_if<std::int64_t>(&value); all != nullptr && term.kind == TermKind::integers) {
    return term.length == 0 ? std::nullopt : std::optional<Fact>(Integers(term.length, *all));
  }
  return std::visit([](const auto& own) { return Fact(own); }, value);
}

std::optional<std::vector<Fact>> facts_of(const Term& term, const std::vector<RuleValue>& values) {
  std::vector<Fact> facts;
  for (const RuleValue& value : values) {
    const auto fact = fact_of(term, value);
    if (!fact) return std::nullopt;
    facts.push_back(*fact);
  }
  return facts;
}

std::optional<std::vector<Fact>> listed_range(const RuleTests& tests) {
  const Range<std::int64_t> range = range_of<std::int64_t>(tests);
  if (range.empty()) return std::vector<Fact>{};
  // The ends are in order, so that the unsigned difference is the true one.
  const std::uint64_t further = static_cast<std::uint64_t>(range.high) - static_cast<std::uint64_t>(range.low);
  if (further > most_listed) return std::nullopt;
  std::vector<Fact> facts;
  for (std::uint64_t i = 0; i <= further; ++i) facts.emplace_back(range.low + static_cast<std::int64_t>(i));
  return facts;
}

std::optional<std::vector<Fact>> all_facts(const Term& term, const RuleTests& tests) {
  if (term.kind == TermKind::boolean) return std::vector<Fact>{false, true};
  if (const auto words = words_of(term); !words.empty()) return std::vector<Fact>(words.begin(), words.end());
  for (const Comparison comparison : {Comparison::equal, Comparison::in}) {
    const auto found = tests.find(comparison);
    if (found == tests.end()) continue;
    if (auto facts = facts_of(term, found->second)) return facts;
  }
  return term.kind == TermKind::integer ? listed_range(tests) : std::nullopt;
}

/// Every fact that passes the tests, where there are only so many.
std::optional<std::vector<Fact>> passing_facts(const Term& term, const RuleTests& tests) {
  auto facts = all_facts(term, tests);
  if (facts) std::erase_if(*facts, [&](const Fact& fact) { return !passes(fact, tests); });
  return facts;
}

// ---- all others ----

bool certainly_empty(const Term& term, const RuleTests& tests) {
  if (term.kind == TermKind::real) return range_of<double>(tests).empty();
  const bool numbers = term.kind == TermKind::integer || (term.kind == TermKind::integers && term.length != 0);
  return numbers && range_of<std::int64_t>(tests).empty();
}

bool same_or_listed(const RuleTests& narrow, const std::vector<RuleValue>& wide) {
  for (const Comparison comparison : {Comparison::equal, Comparison::in}) {
    const auto found = narrow.find(comparison);
    if (found == narrow.end()) continue;
    return std::all_of(found->second.begin(), found->second.end(), [&](const RuleValue& value) {
      return std::find(wide.begin(), wide.end(), value) != wide.end();
    });
  }
  return false;
}

bool excludes(const Term& term, const RuleTests& narrow, const RuleValue& value) {
  const auto fact = fact_of(term, value);
  if (fact) return !passes(*fact, narrow);
  for (const Comparison comparison : {Comparison::not_equal, Comparison::not_in}) {
    const auto found = narrow.find(comparison);
    if (found == narrow.end()) continue;
    if (std::find(found->second.begin(), found->second.end(), value) != found->second.end()) return true;
  }
  return false;
}

bool has_part(const Term& term, const RuleTests& narrow, const RuleValue& part) {
  const auto found = narrow.find(Comparison::contains);
  if (found == narrow.end()) return false;
  return std::any_of(found->second.begin(), found->second.end(), [&](const RuleValue& value) {
    if (term.kind != TermKind::text) return value == part;
    return std::get<std::string>(value).find(std::get<std::string>(part)) != std::string::npos;
  });
}

bool implies_order(const Term& term, const RuleTests& narrow, Comparison comparison, const RuleValue& bound) {
  const RuleTests wide = {{comparison, {bound}}};
  if (term.kind == TermKind::real) return range_of<double>(narrow).within(range_of<double>(wide));
  return range_of<std::int64_t>(narrow).within(range_of<std::int64_t>(wide));
}

bool implies_test(const Term& term, const RuleTests& narrow, Comparison comparison,
                  const std::vector<RuleValue>& values) {
  switch (comparison) {
    case Comparison::equal:
    case Comparison::in:
      return same_or_listed(narrow, values);
    case Comparison::not_equal:
    case Comparison::not_in:
      return std::all_of(values.begin(), values.end(), [&](const RuleValue& v) { return excludes(term, narrow, v); });
    case Comparison::contains:
      return std::all_of(values.begin(), values.end(), [&](const RuleValue& v) { return has_part(term, narrow, v); });
    case Comparison::multiple_of:
      return divisor_of(narrow).value_or(1) % std::get<std::int64_t>(values.front()) == 0;
    default:
      return implies_order(term, narrow, comparison, values.front());
  }
}

bool implies_key(const Term& term, const RuleTests& narrow, const RuleTests& wide) {
  if (const auto facts = passing_facts(term, narrow)) {
    return std::all_of(facts->begin(), facts->end(), [&](const Fact& fact) { return passes(fact, wide); });
  }
  return std::all_of(wide.begin(), wide.end(),
                     [&](const auto& test) { return implies_test(term, narrow, test.first, test.second); });
}

}  // namespace

std::string contradiction_in(const PolicyRule& rule) {
  for (const auto& [key, tests] : rule.when) {
    const Term term = parse_term(rule.op, key);
    const auto facts = passing_facts(term, tests);
    if (facts ? facts->empty() : certainly_empty(term, tests)) return key;
  }
  return {};
}

std::optional<Fact> only_fact(const Term& term, const RuleTests& tests) {
  const auto facts = passing_facts(term, tests);
  return facts && facts->size() == 1 ? std::optional(facts->front()) : std::nullopt;
}

bool implies(const PolicyRule& narrow, const PolicyRule& wide) {
  if (narrow.op != wide.op) return false;
  if (!wide.range.empty()) {
    if (narrow.range.empty()) return false;
    if (!parse_problem_range(wide.range).contains(parse_problem_range(narrow.range))) return false;
  }
  return std::all_of(wide.when.begin(), wide.when.end(), [&](const auto& condition) {
    // A key that the narrow rule does not read may be absent, and then no test of it holds.
    const auto own = narrow.when.find(condition.first);
    return own != narrow.when.end() && implies_key(parse_term(wide.op, condition.first), own->second, condition.second);
  });
}

}  // namespace xpuruntime
