#include "select/policy_rule_json.h"

#include <algorithm>
#include <limits>
#include <map>

#include "select/rule_ranges.h"
#include "select/rule_terms.h"
#include "select/unavailable.h"

namespace xpuruntime {
namespace {

constexpr Comparison comparisons[] = {
    Comparison::equal,    Comparison::not_equal, Comparison::less,   Comparison::at_most,  Comparison::greater,
    Comparison::at_least, Comparison::in,        Comparison::not_in, Comparison::contains, Comparison::multiple_of};

/// One key of one rule: what its values are checked against.
struct KeyReader {
  std::string_view key;
  const Term& term;

  static std::int64_t whole(const JsonValue& from) {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (from.json.is_number_unsigned() && from.json.get<std::uint64_t>() > most) {
      from.refuse("is larger than any number here; give at most " + std::to_string(most));
    }
    if (!from.json.is_number_integer()) from.refuse("must hold whole numbers; correct the value");
    return from.json.get<std::int64_t>();
  }

  static RuleValue raw(const JsonValue& from) {
    if (from.json.is_boolean()) return from.json.get<bool>();
    if (from.json.is_number_float()) return from.json.get<double>();
    if (from.json.is_number()) return whole(from);
    if (from.json.is_string()) return from.json.get<std::string>();
    if (!from.json.is_array()) from.refuse("must be a value; give a number, a string, true, false or a list");
    std::vector<std::int64_t> list;
    while (list.size() < from.json.size()) list.push_back(whole(from.element(list.size())));
    return list;
  }

  RuleValue one(const JsonValue& from, Comparison comparison) const {
    const RuleValue found = raw(from);
    return from.blamed([&] {
      check_comparison(key, term, comparison);
      return canonical_value(key, term, comparison, found);
    });
  }

  std::vector<RuleValue> several(const JsonValue& from, Comparison comparison) const {
    if (!from.json.is_array()) from.refuse("must be a list; put it in square brackets");
    if (from.json.empty()) from.refuse("is an empty list; give a value or remove the field");
    std::vector<RuleValue> values;
    while (values.size() < from.json.size()) values.push_back(one(from.element(values.size()), comparison));
    return values;
  }

  std::vector<RuleValue> operands(const JsonValue& from, Comparison comparison) const {
    const bool list = comparison == Comparison::in || comparison == Comparison::not_in ||
                      (comparison == Comparison::contains && from.json.is_array());
    if (list) return several(from, comparison);
    return {one(from, comparison)};
  }

  RuleTests tests(const JsonValue& from) const {
    if (from.json.is_object()) return compared(from);
    // A list is one of several values; but what is itself a list is equal to a list.
    const bool whole_list = term.kind == TermKind::integers && (from.json.empty() || !from.json.front().is_array());
    const bool choice = from.json.is_array() && !whole_list;
    const Comparison comparison = choice ? Comparison::in : Comparison::equal;
    return {{comparison, operands(from, comparison)}};
  }

  RuleTests compared(const JsonValue& from) const {
    std::vector<std::string_view> known;
    for (const Comparison comparison : comparisons) known.push_back(to_string(comparison));
    RuleTests out;
    for (const auto& [name, value] : from.json.items()) {
      const JsonValue operand = from.field(name, value);
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        operand.blamed([&, &text = name] { fail_unknown("PolicyRule", "comparison", text, known); });
      }
      const Comparison comparison = comparisons[found - known.begin()];
      out[comparison] = operands(operand, comparison);
    }
    if (out.empty()) from.refuse("is empty; add a comparison or remove the key");
    return out;
  }
};

void read_when(PolicyRule& rule, const JsonValue& from) {
  if (!from.json.is_object()) from.refuse("must map keys to what they must be; put it in braces");
  for (const auto& [key, value] : from.json.items()) {
    const JsonValue tests = from.field(key, value);
    const Term term = tests.blamed([&, &text = key] { return parse_term(rule.op, text); });
    rule.when[key] = KeyReader{key, term}.tests(tests);
  }
}

Json value_to_json(const RuleValue& value) {
  return std::visit([](const auto& own) { return Json(own); }, value);
}

Json operands_to_json(Comparison comparison, const std::vector<RuleValue>& values) {
  const bool list = comparison == Comparison::in || comparison == Comparison::not_in;
  if (!list && values.size() == 1) return value_to_json(values.front());
  Json json = Json::array();
  for (const RuleValue& value : values) json.push_back(value_to_json(value));
  return json;
}

Json tests_to_json(const RuleTests& tests) {
  if (tests.size() == 1 && tests.begin()->first == Comparison::equal) {
    return operands_to_json(Comparison::equal, tests.begin()->second);
  }
  Json json = Json::object();
  for (const auto& [comparison, values] : tests) {
    json[std::string(to_string(comparison))] = operands_to_json(comparison, values);
  }
  return json;
}

}  // namespace

std::vector<std::string> read_kernels(const JsonValue& from, OpId op) {
  const auto kernel = [op](const JsonValue& value) {
    auto name = value.as<std::string>();
    value.blamed([&] { check_kernel_name("KernelPolicy", op, name); });
    return name;
  };
  if (!from.json.is_array()) return {kernel(from)};
  if (from.json.empty()) from.refuse("is an empty list; name a kernel or remove the field");
  std::vector<std::string> kernels;
  while (kernels.size() < from.json.size()) kernels.push_back(kernel(from.element(kernels.size())));
  return kernels;
}

// What the fields behind the op may say depends on it.
template <>
struct FieldsOf<PolicyRule> {
  static constexpr FieldRow<PolicyRule> rows[] = {
      text_or_nothing<&PolicyRule::name>("name"),
      {"op", [](PolicyRule& rule, const JsonValue& from) { rule.op = from.parsed(parse_op); },
       [](const PolicyRule& rule) { return Json(to_string(rule.op)); }},
      {"range",
       [](PolicyRule& rule, const JsonValue& from) {
         from.parsed([&](const std::string& text) {
           rule.range = to_string(parse_problem_range(text));
           check_range(rule);
         });
       },
       text_or_nothing<&PolicyRule::range>("").write},
      {"when", read_when,
       [](const PolicyRule& rule) {
         std::map<std::string, Json> keys;  // not one by one into an object, which looks for each name in all of it
         for (const auto& [key, tests] : rule.when) keys.emplace_hint(keys.end(), key, tests_to_json(tests));
         return keys.empty() ? left_out() : Json(keys);
       }},
      {"use", [](PolicyRule& rule, const JsonValue& from) { rule.use = read_kernels(from, rule.op); },
       [](const PolicyRule& rule) { return rule.use.size() == 1 ? Json(rule.use.front()) : Json(rule.use); }},
      text_or_nothing<&PolicyRule::plan>("plan"),
  };
};

void read_value(PolicyRule& to, const JsonValue& from) {
  if (!from.json.is_object()) from.refuse("must be a rule; put \"op\", \"when\" and \"use\" in braces");
  if (!from.json.contains("op")) from.refuse("names no op; add \"op\"");
  if (!from.json.contains("use")) from.refuse("names no kernel; add \"use\"");
  read_fields(to, from);
}

Json write_value(const PolicyRule& rule) { return written(rule); }

}  // namespace xpuruntime
