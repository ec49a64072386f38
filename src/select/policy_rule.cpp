#include "xpuruntime/select/policy_rule.h"

#include <algorithm>
#include <cmath>

#include "core/printable.h"
#include "select/rule_ranges.h"
#include "select/rule_terms.h"
#include "select/unavailable.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr const char* function = "PolicyRule";

using Integers = std::vector<std::int64_t>;
using Texts = std::vector<std::string>;

[[noreturn]] void refuse(std::string_view key, const std::string& message) {
  fail(ErrorCode::invalid_argument, function, "'" + shown(key.substr(0, 64)) + "' " + message);
}

// ---- which comparisons a kind has ----

bool is_order(Comparison comparison) { return comparison >= Comparison::less && comparison <= Comparison::at_least; }

bool is_sameness(Comparison comparison) {
  return comparison == Comparison::equal || comparison == Comparison::not_equal || comparison == Comparison::in ||
         comparison == Comparison::not_in;
}

bool goes_with(TermKind kind, Comparison comparison) {
  switch (kind) {
    case TermKind::boolean:
      return comparison == Comparison::equal || comparison == Comparison::not_equal;
    case TermKind::integer:
      return comparison != Comparison::contains;
    case TermKind::real:
      return is_sameness(comparison) || is_order(comparison);
    case TermKind::text:
      return is_sameness(comparison) || comparison == Comparison::contains;
    case TermKind::dtype:
    case TermKind::device_type:
    case TermKind::choice:
      return is_sameness(comparison);
    case TermKind::integers:
      return true;
    case TermKind::texts:
      return comparison == Comparison::contains;
  }
  return false;
}

std::string_view what_it_is(TermKind kind) {
  constexpr std::string_view names[] = {"true or false",    "a whole number", "a number", "a string",
                                        "a dtype",          "a device type",  "a word",   "a list of whole numbers",
                                        "a list of strings"};
  return names[static_cast<std::size_t>(kind)];
}

// ---- values ----

std::string parse_word(std::string_view key, const Term& term, const std::string& text) {
  if (term.kind == TermKind::dtype) return std::string(to_string(parse_data_type(text)));
  if (term.kind == TermKind::device_type) return std::string(to_string(parse_device_type(text)));
  if (term.kind != TermKind::choice) return text;
  const std::vector<std::string> words = words_of(term);
  if (std::find(words.begin(), words.end(), text) != words.end()) return text;
  const std::vector<std::string_view> known(words.begin(), words.end());
  fail_unknown(function, "value of '" + std::string(key) + "'", text, known);
}

RuleValue canonical_number(std::string_view key, const Term& term, Comparison comparison, const RuleValue& value) {
  if (term.kind == TermKind::real) {
    if (const auto* whole = std::get_if<std::int64_t>(&value)) return static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value); real != nullptr && std::isfinite(*real)) return *real;
    refuse(key, "is a number; compare it with one");
  }
  const auto* whole = std::get_if<std::int64_t>(&value);
  if (whole == nullptr) {
    refuse(key, "is " + std::string(what_it_is(term.kind)) + "; compare it with a whole number, without a point");
  }
  if (comparison == Comparison::multiple_of && *whole < 1) {
    refuse(key, "cannot be a multiple of " + std::to_string(*whole) + "; give 1 or more");
  }
  return *whole;
}

RuleValue canonical_list(std::string_view key, const Term& term, Comparison comparison, const RuleValue& value) {
  const auto* list = std::get_if<Integers>(&value);
  if (list == nullptr || !is_sameness(comparison)) return canonical_number(key, term, comparison, value);
  if (list->size() > max_rank || (term.length != 0 && list->size() != term.length)) {
    refuse(key, "has " + (term.length != 0 ? std::to_string(term.length) : "at most 8") + " values, and " +
                    std::to_string(list->size()) + " are there; give as many, or one number for all");
  }
  return *list;
}

// ---- tests ----

template <class T>
bool in_order(const T& a, Comparison comparison, const T& b) {
  switch (comparison) {
    case Comparison::less:
      return a < b;
    case Comparison::at_most:
      return a <= b;
    case Comparison::greater:
      return a > b;
    case Comparison::at_least:
      return a >= b;
    default:
      return false;
  }
}

bool is_same(const Fact& fact, const RuleValue& value) {
  if (const auto* list = std::get_if<Integers>(&fact)) {
    // One number stands for all elements.
    if (const auto* all = std::get_if<std::int64_t>(&value)) {
      return std::all_of(list->begin(), list->end(), [&](std::int64_t element) { return element == *all; });
    }
  }
  return std::visit(
      [&](const auto& own) {
        using T = std::decay_t<decltype(own)>;
        const auto* other = std::get_if<T>(&fact);
        return other != nullptr && *other == own;
      },
      value);
}

bool is_ordered(const Fact& fact, Comparison comparison, const RuleValue& value) {
  if (const auto* real = std::get_if<double>(&fact)) return in_order(*real, comparison, std::get<double>(value));
  const std::int64_t bound = std::get<std::int64_t>(value);
  if (const auto* whole = std::get_if<std::int64_t>(&fact)) return in_order(*whole, comparison, bound);
  const Integers& list = std::get<Integers>(fact);
  return std::all_of(list.begin(), list.end(),
                     [&](std::int64_t element) { return in_order(element, comparison, bound); });
}

bool is_multiple(const Fact& fact, std::int64_t of) {
  if (const auto* whole = std::get_if<std::int64_t>(&fact)) return *whole % of == 0;
  const Integers& list = std::get<Integers>(fact);
  return std::all_of(list.begin(), list.end(), [&](std::int64_t element) { return element % of == 0; });
}

bool has(const Fact& fact, const RuleValue& value) {
  if (const auto* text = std::get_if<std::string>(&fact)) return text->find(std::get<std::string>(value)) != text->npos;
  if (const auto* texts = std::get_if<Texts>(&fact)) {
    return std::find(texts->begin(), texts->end(), std::get<std::string>(value)) != texts->end();
  }
  const Integers& list = std::get<Integers>(fact);
  return std::find(list.begin(), list.end(), std::get<std::int64_t>(value)) != list.end();
}

bool takes_several(Comparison comparison) {
  return comparison == Comparison::in || comparison == Comparison::not_in || comparison == Comparison::contains;
}

/// The values in the form that facts have.
std::vector<RuleValue> canonical_values(std::string_view key, const Term& term, Comparison comparison,
                                        const std::vector<RuleValue>& values) {
  check_comparison(key, term, comparison);
  if (values.empty() || (values.size() > 1 && !takes_several(comparison))) {
    refuse(key, std::string(to_string(comparison)) +
                    (takes_several(comparison) ? " takes one value or more; give one" : " takes one value; give one"));
  }
  std::vector<RuleValue> out;
  for (const RuleValue& value : values) out.push_back(canonical_value(key, term, comparison, value));
  return out;
}

}  // namespace

std::string_view to_string(Comparison comparison) {
  constexpr std::string_view names[] = {"==", "!=", "<", "<=", ">", ">=", "in", "not_in", "contains", "multiple_of"};
  return names[static_cast<std::size_t>(comparison)];
}

void check_comparison(std::string_view key, const Term& term, Comparison comparison) {
  if (goes_with(term.kind, comparison)) return;
  std::string known;
  for (int i = 0; i <= static_cast<int>(Comparison::multiple_of); ++i) {
    const auto other = static_cast<Comparison>(i);
    if (goes_with(term.kind, other)) known += (known.empty() ? "" : " ") + std::string(to_string(other));
  }
  refuse(key, "is " + std::string(what_it_is(term.kind)) + " and cannot be compared with " +
                  std::string(to_string(comparison)) + "; use one of: " + known);
}

RuleValue canonical_value(std::string_view key, const Term& term, Comparison comparison, const RuleValue& value) {
  switch (term.kind) {
    case TermKind::boolean:
      if (!std::holds_alternative<bool>(value)) refuse(key, "is true or false; compare it with one of them");
      return value;
    case TermKind::integer:
    case TermKind::real:
      return canonical_number(key, term, comparison, value);
    case TermKind::integers:
      return canonical_list(key, term, comparison, value);
    default:
      break;
  }
  const auto* text = std::get_if<std::string>(&value);
  if (text == nullptr) {
    refuse(key, "is " + std::string(what_it_is(term.kind)) + "; compare it with a string in double quotes");
  }
  return parse_word(key, term, *text);
}

bool holds(const Fact& fact, Comparison comparison, std::span<const RuleValue> values) {
  if (std::holds_alternative<std::monostate>(fact)) return false;
  const auto same = [&](const RuleValue& value) { return is_same(fact, value); };
  switch (comparison) {
    case Comparison::equal:
    case Comparison::in:
      return std::any_of(values.begin(), values.end(), same);
    case Comparison::not_equal:
    case Comparison::not_in:
      return std::none_of(values.begin(), values.end(), same);
    case Comparison::contains:
      return std::all_of(values.begin(), values.end(), [&](const RuleValue& value) { return has(fact, value); });
    case Comparison::multiple_of:
      return is_multiple(fact, std::get<std::int64_t>(values.front()));
    default:
      return is_ordered(fact, comparison, values.front());
  }
}

bool PolicyRule::matches(const Problem& problem, const DeviceProfile& profile) const {
  if (problem.op != op || (!range.empty() && !in_range(parse_problem_range(range), problem, profile))) return false;
  for (const auto& [key, tests] : when) {
    const Term term = parse_term(op, key);
    const Fact fact = term.read(problem, profile);
    for (const auto& [comparison, values] : tests) {
      if (!holds(fact, comparison, canonical_values(key, term, comparison, values))) return false;
    }
  }
  return true;
}

void check_conditions(const PolicyRule& rule) {
  if (!rule.range.empty()) check_range(rule);
  for (const auto& [key, tests] : rule.when) {
    const Term term = parse_term(rule.op, key);
    if (tests.empty()) refuse(key, "is empty; add a comparison or remove the key");
    for (const auto& [comparison, values] : tests) {
      if (canonical_values(key, term, comparison, values) == values) continue;
      refuse(key,
             "is compared with another spelling of a value; write dtypes and device types as problem texts print "
             "them, and real numbers as double");
    }
  }
}

void PolicyRule::check() const {
  check_conditions(*this);
  if (use.empty()) fail(ErrorCode::invalid_argument, function, "the rule names no kernel; add one to use");
  for (const std::string& kernel : use) check_kernel_name(function, op, kernel);
}

}  // namespace xpuruntime
