#include <algorithm>

#include "core/environment_variable.h"
#include "core/names.h"
#include "select/policy_check.h"
#include "select/policy_rule_json.h"

namespace xpuruntime {
namespace {

constexpr std::string_view field_names[] = {
    "version",           "preferences",           "rules",         "precision", "auto_strategy", "strategy",
    "default_precision", "workspace_limit_bytes", "deterministic", "threads"};
constexpr int policy_version = 1;
constexpr std::size_t most_rules = 100'000;
constexpr std::size_t most_bytes = std::size_t{64} << 20;

Strategy read_strategy(const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_number_integer() && !value.is_string()) {
    source.refuse_field(field, "must be a strategy's name in double quotes, or 0, 1 or 2");
  }
  const std::string name = value.is_string() ? value.get<std::string>() : dump_json(value);
  return blame_field(source, field, [&] { return parse_strategy(name); });
}

KernelPreference read_preference(const Json& value, OpId op, const std::string& field, const JsonSource& source) {
  if (value.is_string() || value.is_array()) return {read_kernels(value, op, field, source), false};
  if (!value.is_object()) source.refuse_field(field, "must be a kernel's name, a list of names, or an object");
  KernelPreference preference;
  for (const auto& [name, element] : value.items()) {
    constexpr std::string_view known[] = {"kernel", "mode"};
    const std::string place = field + "." + name;
    if (name == "kernel") {
      if (!element.is_string()) source.refuse_field(place, "must be a text; put one kernel's name in double quotes");
      preference.kernels = read_kernels(element, op, place, source);
    } else if (name == "mode") {
      const std::string mode = read_string(element, place, source);
      if (mode != "force" && mode != "prefer") source.refuse_field(place, "must be \"force\" or \"prefer\"");
      preference.force = mode == "force";
    } else {
      source.refuse_unknown(place, known);
    }
  }
  if (preference.kernels.empty()) source.refuse_field(field, "names no kernel; add \"kernel\"");
  return preference;
}

void read_preferences(KernelPolicy& policy, const Json& value, const JsonSource& source) {
  if (!value.is_object()) source.refuse_field("preferences", "must map ops to kernels; put it in braces");
  for (const auto& [name, element] : value.items()) {
    const std::string field = "preferences." + name;
    const OpId op = blame_field(source, field, [&text = name] { return parse_op(text); });
    KernelPreference preference = read_preference(element, op, field, source);
    preference.name = name;
    if (!policy.preferences.emplace(op, std::move(preference)).second) {
      source.refuse_field(field, "names an op that stands there under another name; remove one");
    }
  }
}

DirectionWishes read_wishes(const Json& value, const std::string& field, const JsonSource& source) {
  const auto wish = [&](const Json& element, const std::string& place) {
    const std::string text = read_string(element, place, source);
    return blame_field(source, place, [&] { return parse_precision_wish(text); });
  };
  if (value.is_string()) return {wish(value, field), {}};
  if (!value.is_object()) {
    source.refuse_field(field, "must be a precision, or an object with \"forward\" and \"backward\"");
  }
  DirectionWishes wishes;
  for (const auto& [name, element] : value.items()) {
    constexpr std::string_view known[] = {"forward", "backward"};
    const std::string place = field + "." + name;
    if (name != "forward" && name != "backward") source.refuse_unknown(place, known);
    (name == "forward" ? wishes.forward : wishes.backward) = wish(element, place);
  }
  if (value.empty()) source.refuse_field(field, "says nothing; add \"forward\" or \"backward\"");
  return wishes;
}

void read_precision(KernelPolicy& policy, const Json& value, const JsonSource& source) {
  if (!value.is_object()) source.refuse_field("precision", "must map ops to precisions; put it in braces");
  for (const auto& [name, element] : value.items()) {
    const std::string field = "precision." + name;
    const OpId op = blame_field(source, field, [&text = name] { return parse_op(text); });
    if (!policy.precision.emplace(op, read_wishes(element, field, source)).second) {
      source.refuse_field(field, "names an op that stands there under another name; remove one");
    }
  }
}

void read_rules(KernelPolicy& policy, const Json& value, const JsonSource& source) {
  if (!value.is_array()) source.refuse_field("rules", "must be a list of rules; put it in square brackets");
  if (value.size() > most_rules) {
    source.refuse_field("rules", "are " + std::to_string(value.size()) + ", and a policy has at most " +
                                     std::to_string(most_rules) + "; split it");
  }
  std::vector<PolicyRule> rules;
  for (const Json& element : value) {
    rules.push_back(read_rule(element, "rules[" + std::to_string(rules.size()) + "]", source));
  }
  policy.rules = std::move(rules);
}

void read_field(KernelPolicy& policy, const std::string& name, const Json& value, const JsonSource& source) {
  if (name == "preferences") {
    read_preferences(policy, value, source);
  } else if (name == "rules") {
    read_rules(policy, value, source);
  } else if (name == "precision") {
    read_precision(policy, value, source);
  } else if (name == "auto_strategy" || name == "strategy") {
    if (policy.auto_strategy) source.refuse_field(name, "and its other name both stand there; remove one");
    policy.auto_strategy = read_strategy(value, name, source);
  } else if (name == "default_precision") {
    const std::string text = read_string(value, name, source);
    policy.default_precision = blame_field(source, name, [&] { return checked_default(parse_data_type(text)); });
  } else if (name == "workspace_limit_bytes") {
    if (!value.is_number_unsigned()) source.refuse_field(name, "must be a whole number of bytes, 0 or more");
    policy.workspace_limit_bytes = value.get<std::uint64_t>();
  } else if (name == "deterministic") {
    if (!value.is_boolean()) source.refuse_field(name, "must be true or false");
    policy.deterministic = value.get<bool>();
  } else if (name == "threads") {
    const bool fits = value.is_number_unsigned() && value >= 1 && value <= UINT32_MAX;
    if (!fits) source.refuse_field(name, "must be a whole number of threads, 1 or more");
    policy.threads = value.get<std::uint32_t>();
  } else if (name == "$schema") {
    read_string(value, name, source);  // for editors; it says nothing to us
  } else if (name == "version") {
    if (value != policy_version) source.refuse_field(name, "must be 1, the only version there is");
  } else {
    source.refuse_unknown(name, field_names);
  }
}

KernelPolicy parse_policy(std::string_view text, const JsonSource& source) {
  const Json json = parse_json(text, source);
  if (!json.is_object())
    source.refuse(ErrorCode::invalid_argument, "a policy is a JSON object; put its fields in braces");
  KernelPolicy policy;
  for (const auto& [name, value] : json.items()) read_field(policy, name, value, source);
  return policy;
}

Json preference_to_json(const KernelPreference& preference) {
  if (preference.force) return {{"kernel", preference.kernels.front()}, {"mode", "force"}};
  if (preference.kernels.size() == 1) return preference.kernels.front();
  return preference.kernels;
}

Json precision_to_json(const DirectionWishes& wishes) {
  if (wishes.forward && !wishes.backward) return to_string(*wishes.forward);
  Json json = Json::object();
  if (wishes.forward) json["forward"] = to_string(*wishes.forward);
  if (wishes.backward) json["backward"] = to_string(*wishes.backward);
  return json;
}

// The policy, its rules, a rule, its conditions, one of them, its values, a value that is a list.
constexpr int policy_depth = 7;

JsonSource file_source(const std::string& path) {
  return {"KernelPolicy::load", "policy file '" + path + "': ", "policy", policy_depth};
}

}  // namespace

Json policy_to_json(const KernelPolicy& policy, bool normal) {
  Json json = {{"preferences", Json::object()}};
  for (const auto& [op, preference] : policy.preferences) {
    if (preference.kernels.empty()) continue;  // it wishes for nothing
    // A name may be set by hand: one that is none of this op's would make another policy of the file.
    const bool given = !normal && find_op(preference.name) == op;
    json["preferences"][given ? preference.name : std::string(to_string(op))] = preference_to_json(preference);
  }
  if (!policy.rules.empty()) {
    Json& list = json["rules"] = Json::array();
    for (const PolicyRule& rule : policy.rules) list.push_back(rule_to_json(rule));
  }
  for (const auto& [op, wishes] : policy.precision) {
    json["precision"][std::string(to_string(op))] = precision_to_json(wishes);
  }
  if (const auto strategy = policy.auto_strategy) {
    json["auto_strategy"] = normal ? Json(to_string(*strategy)) : Json(static_cast<int>(*strategy));
  }
  if (policy.default_precision) json["default_precision"] = precision_name(*policy.default_precision);
  if (policy.workspace_limit_bytes) json["workspace_limit_bytes"] = *policy.workspace_limit_bytes;
  if (policy.deterministic) json["deterministic"] = *policy.deterministic;
  if (policy.threads) json["threads"] = *policy.threads;
  return json;
}

std::string KernelPolicy::to_json() const {
  // A rule's name may be any bytes where it was set by hand; what is not UTF-8 is replaced, never an error.
  return dump_json(policy_to_json(*this, false), 2) + "\n";
}

KernelPolicy KernelPolicy::from_json(std::string_view json) {
  return parse_policy(json, {"KernelPolicy::from_json", "policy text: ", "policy", policy_depth, json});
}

std::string read_policy_text(const std::string& path) { return read_text_file(path, file_source(path), most_bytes); }

KernelPolicy policy_in_file(std::string_view text, const std::string& path) {
  JsonSource source = file_source(path);
  source.text = text;
  return parse_policy(text, source);
}

KernelPolicy KernelPolicy::load(const std::string& path) { return policy_in_file(read_policy_text(path), path); }

void KernelPolicy::save(const std::string& path) const {
  if (rules.size() > most_rules) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::save",
         "policy file '" + path + "': " + std::to_string(rules.size()) + " rules are more than the " +
             std::to_string(most_rules) + " that can be read again; nothing was written");
  }
  write_file_atomically(path, to_json(), {"KernelPolicy::save", "policy file '" + path + "': ", "policy"});
}

std::optional<KernelPolicy> policy_from_environment() {
  constexpr const char* variable = "XPURUNTIME_POLICY";
  const char* const path = environment_variable(variable);
  if (path == nullptr || *path == '\0') return std::nullopt;
  try {
    return KernelPolicy::load(path);
  } catch (const Error& error) {
    std::string_view text = error.what();
    if (const auto end = text.find("] "); end != text.npos) text.remove_prefix(end + 2);
    fail(error.code(), "policy_from_environment", std::string(variable) + ": " + std::string(text));
  }
}

KernelPolicy load_policy(const std::string& explicit_path) {
  if (!explicit_path.empty()) return KernelPolicy::load(explicit_path);
  return policy_from_environment().value_or(KernelPolicy{});
}

}  // namespace xpuruntime
