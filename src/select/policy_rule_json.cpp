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

/// One key of one rule: what its values are checked against, and who is blamed.
struct KeyReader {
  std::string_view key;
  const Term& term;
  const JsonSource& source;

  std::int64_t whole(const Json& value, const std::string& field) const {
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > most) {
      source.refuse_field(field, "is larger than any number here; give at most " + std::to_string(most));
    }
    if (!value.is_number_integer()) source.refuse_field(field, "must hold whole numbers; correct the value");
    return value.get<std::int64_t>();
  }

  RuleValue raw(const Json& value, const std::string& field) const {
    if (value.is_boolean()) return value.get<bool>();
    if (value.is_number_float()) return value.get<double>();
    if (value.is_number()) return whole(value, field);
    if (value.is_string()) return value.get<std::string>();
    if (!value.is_array()) source.refuse_field(field, "must be a value; give a number, a text, true, false or a list");
    std::vector<std::int64_t> list;
    for (const Json& element : value) {
      list.push_back(whole(element, field + "[" + std::to_string(list.size()) + "]"));
    }
    return list;
  }

  RuleValue one(const Json& value, Comparison comparison, const std::string& field) const {
    const RuleValue found = raw(value, field);
    return blame_field(source, field, [&] {
      check_comparison(key, term, comparison);
      return canonical_value(key, term, comparison, found);
    });
  }

  std::vector<RuleValue> several(const Json& value, Comparison comparison, const std::string& field) const {
    if (!value.is_array()) source.refuse_field(field, "must be a list; put it in square brackets");
    if (value.empty()) source.refuse_field(field, "is an empty list; give a value or remove the field");
    std::vector<RuleValue> values;
    for (const Json& element : value) {
      values.push_back(one(element, comparison, field + "[" + std::to_string(values.size()) + "]"));
    }
    return values;
  }

  std::vector<RuleValue> operands(const Json& value, Comparison comparison, const std::string& field) const {
    const bool list = comparison == Comparison::in || comparison == Comparison::not_in ||
                      (comparison == Comparison::contains && value.is_array());
    if (list) return several(value, comparison, field);
    return {one(value, comparison, field)};
  }

  RuleTests tests(const Json& value, const std::string& field) const {
    if (value.is_object()) return compared(value, field);
    // A list is one of several values; but what is itself a list is equal to a list.
    const bool whole_list = term.kind == TermKind::integers && (value.empty() || !value.front().is_array());
    const bool choice = value.is_array() && !whole_list;
    const Comparison comparison = choice ? Comparison::in : Comparison::equal;
    return {{comparison, operands(value, comparison, field)}};
  }

  RuleTests compared(const Json& value, const std::string& field) const {
    std::vector<std::string_view> known;
    for (const Comparison comparison : comparisons) known.push_back(to_string(comparison));
    RuleTests out;
    for (const auto& [name, operand] : value.items()) {
      const std::string place = field + "." + name;
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) {
        blame_field(source, place,
                    [&, &text = name]() -> int { fail_unknown("PolicyRule", "comparison", text, known); });
      }
      const Comparison comparison = comparisons[found - known.begin()];
      out[comparison] = operands(operand, comparison, place);
    }
    if (out.empty()) source.refuse_field(field, "asks nothing; add a comparison or remove the key");
    return out;
  }
};

void read_when(PolicyRule& rule, const Json& value, const std::string& field, const JsonSource& source) {
  if (!value.is_object()) source.refuse_field(field, "must map keys to what they must be; put it in braces");
  for (const auto& [key, element] : value.items()) {
    const std::string place = field + "." + key;
    const Term term = blame_field(source, place, [&, &text = key] { return parse_term(rule.op, text); });
    rule.when[key] = KeyReader{key, term, source}.tests(element, place);
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

std::string read_string(const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_string()) source.refuse_field(field, "must be a text; put it in double quotes");
  return value.get<std::string>();
}

std::vector<std::string> read_kernels(const Json& value, OpId op, const std::string& field, const JsonSource& source) {
  const auto kernel = [&](const Json& element, const std::string& place) {
    const std::string name = read_string(element, place, source);
    blame_field(source, place, [&] {
      check_kernel_name("KernelPolicy", op, name);
      return 0;
    });
    return name;
  };
  if (!value.is_array()) return {kernel(value, field)};
  std::vector<std::string> kernels;
  for (const Json& element : value) {
    kernels.push_back(kernel(element, field + "[" + std::to_string(kernels.size()) + "]"));
  }
  if (kernels.empty()) source.refuse_field(field, "is an empty list; name a kernel or remove the field");
  return kernels;
}

PolicyRule read_rule(const Json& value, const std::string& field, const JsonSource& source) {
  constexpr std::string_view known[] = {"op", "range", "when", "use", "name"};
  if (!value.is_object()) source.refuse_field(field, "must be a rule; put \"op\", \"when\" and \"use\" in braces");
  for (const auto& [name, element] : value.items()) {
    if (std::find(std::begin(known), std::end(known), name) == std::end(known)) {
      source.refuse_unknown(field + "." + name, known);
    }
  }
  // What the other fields may say depends on the op.
  if (!value.contains("op")) source.refuse_field(field, "names no op; add \"op\"");
  const std::string op = read_string(value["op"], field + ".op", source);
  PolicyRule rule;
  rule.op = blame_field(source, field + ".op", [&] { return parse_op(op); });
  if (!value.contains("use")) source.refuse_field(field, "names no kernel; add \"use\"");
  rule.use = read_kernels(value["use"], rule.op, field + ".use", source);
  if (value.contains("range")) {
    const std::string text = read_string(value["range"], field + ".range", source);
    blame_field(source, field + ".range", [&] {
      rule.range = to_string(parse_problem_range(text));
      check_range(rule);
      return 0;
    });
  }
  if (value.contains("when")) read_when(rule, value["when"], field + ".when", source);
  if (value.contains("name")) rule.name = read_string(value["name"], field + ".name", source);
  return rule;
}

Json rule_to_json(const PolicyRule& rule) {
  Json json = Json::object();
  if (!rule.name.empty()) json["name"] = rule.name;
  json["op"] = to_string(rule.op);
  if (!rule.range.empty()) json["range"] = rule.range;
  if (!rule.when.empty()) {
    std::map<std::string, Json> conditions;  // not one by one into an object, which looks for each name in all of it
    for (const auto& [key, tests] : rule.when) conditions.emplace_hint(conditions.end(), key, tests_to_json(tests));
    json["when"] = conditions;
  }
  json["use"] = rule.use.size() == 1 ? Json(rule.use.front()) : Json(rule.use);
  return json;
}

}  // namespace xpuruntime
