
#include "core/environment_variable.h"
#include "core/names.h"
#include "select/policy_check.h"
#include "select/policy_rule_json.h"

namespace xpuruntime {
namespace {

constexpr std::size_t most_rules = 100'000;
constexpr std::size_t most_policy_bytes = std::size_t{64} << 20;

void read_strategy(KernelPolicy& policy, const JsonValue& from) {
  if (policy.auto_strategy) from.refuse("and its alias are both given; remove one");
  if (!from.json.is_number_integer() && !from.json.is_string()) {
    from.refuse("must be a strategy's name in double quotes, or 0, 1 or 2");
  }
  const std::string name = from.json.is_string() ? from.json.get<std::string>() : dump_json(from.json);
  policy.auto_strategy = from.blamed([&] { return parse_strategy(name); });
}

KernelPreference read_preference(const JsonValue& from, OpId op) {
  if (from.json.is_string() || from.json.is_array()) return {read_kernels(from, op), false};
  if (!from.json.is_object()) from.refuse("must be a kernel's name, a list of names, or an object");
  constexpr std::string_view known[] = {"kernel", "mode"};
  check_names(from, known);
  if (!from.json.contains("kernel")) from.refuse("names no kernel; add \"kernel\"");
  const JsonValue kernel = from.field("kernel", from.json["kernel"]);
  if (!kernel.json.is_string()) kernel.refuse("must be a string; put one kernel's name in double quotes");
  KernelPreference preference = {read_kernels(kernel, op), false};
  if (from.json.contains("mode")) {
    const JsonValue mode = from.field("mode", from.json["mode"]);
    preference.force = mode.as<std::string>() == "force";
    if (!preference.force && mode.json != "prefer") mode.refuse("must be \"force\" or \"prefer\"");
  }
  return preference;
}

/// Keeps what read(value, op, name) gives for each op of an object.
template <class Value, class Read>
void read_ops(std::map<OpId, Value>& to, const JsonValue& from, const char* kind, const Read& read) {
  if (!from.json.is_object()) from.refuse(std::string("must map ops to ") + kind + "; put it in braces");
  for (const auto& [name, json] : from.json.items()) {
    const JsonValue value = from.field(name, json);
    const OpId op = value.blamed([&text = name] { return parse_op(text); });
    if (!to.emplace(op, read(value, op, name)).second) {
      value.refuse("names an op that is already given under another name; remove one");
    }
  }
}

void read_preferences(KernelPolicy& policy, const JsonValue& from) {
  read_ops(policy.preferences, from, "kernels", [](const JsonValue& value, OpId op, const std::string& name) {
    KernelPreference preference = read_preference(value, op);
    preference.name = name;
    return preference;
  });
}

template <std::optional<RequestedPrecision> DirectionPrecisions::*member>
constexpr FieldRow<DirectionPrecisions> requested(std::string_view name) {
  return {name,
          [](DirectionPrecisions& requested, const JsonValue& from) {
            requested.*member = from.parsed(parse_requested_precision);
          },
          [](const DirectionPrecisions& requested) {
            return requested.*member ? Json(to_string(*(requested.*member))) : left_out();
          }};
}

}  // namespace

template <>
struct FieldsOf<DirectionPrecisions> {
  static constexpr FieldRow<DirectionPrecisions> rows[] = {requested<&DirectionPrecisions::forward>("forward"),
                                                           requested<&DirectionPrecisions::backward>("backward")};
};

namespace {

void read_precision(KernelPolicy& policy, const JsonValue& from) {
  read_ops(policy.precision, from, "precisions", [](const JsonValue& value, OpId, const std::string&) {
    if (value.json.is_string()) return DirectionPrecisions{value.parsed(parse_requested_precision), {}};
    if (!value.json.is_object()) {
      value.refuse("must be a precision, or an object with \"forward\" and \"backward\"");
    }
    if (value.json.empty()) value.refuse("is empty; add \"forward\" or \"backward\"");
    return value.as<DirectionPrecisions>();
  });
}

Json preference_to_json(const KernelPreference& preference) {
  if (preference.force) return {{"kernel", preference.kernels.front()}, {"mode", "force"}};
  if (preference.kernels.size() == 1) return preference.kernels.front();
  return preference.kernels;
}

/// `normal`: ops by their own names.
Json preferences_to_json(const KernelPolicy& policy, bool normal) {
  Json json = Json::object();
  for (const auto& [op, preference] : policy.preferences) {
    if (preference.kernels.empty()) continue;  // it prefers none
    // A name may be set by hand: one that is none of this op's would make another policy of the file.
    const bool given = !normal && find_op(preference.name) == op;
    json[given ? preference.name : std::string(to_string(op))] = preference_to_json(preference);
  }
  return json;
}

Json precision_to_json(const KernelPolicy& policy) {
  Json json = left_out();
  for (const auto& [op, requested] : policy.precision) {
    if (json.is_discarded()) json = Json::object();
    json[std::string(to_string(op))] =
        requested.forward && !requested.backward ? Json(to_string(*requested.forward)) : written(requested);
  }
  return json;
}

void read_rules(KernelPolicy& policy, const JsonValue& from) {
  if (from.json.is_array() && from.json.size() > most_rules) {
    from.refuse("are " + std::to_string(from.json.size()) + ", and a policy has at most " + std::to_string(most_rules) +
                "; split it");
  }
  policy.rules = from.as<std::vector<PolicyRule>>();
}

// The policy, its rules, a rule, its conditions, one of them, its values, a value that is a list.
constexpr int policy_depth = 7;

JsonSource file_source(const std::string& path) {
  return {"KernelPolicy::load", "policy file '" + path + "': ", "policy", policy_depth};
}

}  // namespace

template <>
struct FieldsOf<KernelPolicy> {
  using P = KernelPolicy;
  static constexpr FieldRow<P> rows[] = {
      version_field<P, 1>(),
      schema_field<P>(),
      {"preferences", read_preferences, [](const P& policy) { return preferences_to_json(policy, true); }},
      {"rules", read_rules,
       [](const P& policy) {
         Json list = policy.rules.empty() ? left_out() : Json::array();
         for (const PolicyRule& rule : policy.rules) list.push_back(write_value(rule));
         return list;
       }},
      {"precision", read_precision, precision_to_json},
      {"auto_strategy", read_strategy,
       [](const P& policy) { return policy.auto_strategy ? Json(to_string(*policy.auto_strategy)) : left_out(); }},
      {"strategy", read_strategy},
      {"default_precision",
       [](P& policy, const JsonValue& from) {
         policy.default_precision =
             from.parsed([](const std::string& name) { return checked_default(parse_data_type(name)); });
       },
       [](const P& policy) {
         return policy.default_precision ? Json(precision_name(*policy.default_precision)) : left_out();
       }},
      {"workspace_limit_bytes",
       [](P& policy, const JsonValue& from) {
         policy.workspace_limit_bytes = read_whole(from, 0, UINT64_MAX, "a whole number of bytes, 0 or more");
       },
       field<&P::workspace_limit_bytes>("").write},
      field<&P::deterministic>("deterministic"),
      {"threads",
       [](P& policy, const JsonValue& from) {
         policy.threads =
             static_cast<std::uint32_t>(read_whole(from, 1, UINT32_MAX, "a whole number of threads, 1 or more"));
       },
       field<&P::threads>("").write},
  };
};

std::vector<std::string_view> single_policy_fields() {
  std::vector<std::string_view> names;
  for (const auto& row : FieldsOf<KernelPolicy>::rows) {
    if (row.write != nullptr) names.push_back(row.name);
  }
  names.erase(names.begin(), names.begin() + 3);  // preferences, rules, precision
  return names;
}

Json policy_to_json(const KernelPolicy& policy, bool normal) {
  Json json = written(policy);
  if (normal) return json;
  json["preferences"] = preferences_to_json(policy, false);
  if (policy.auto_strategy) json["auto_strategy"] = static_cast<int>(*policy.auto_strategy);
  return json;
}

std::string KernelPolicy::to_json() const {
  // A rule's name may be any bytes where it was set by hand; what is not UTF-8 is replaced, never an error.
  return dump_json(policy_to_json(*this, false), 2) + "\n";
}

KernelPolicy KernelPolicy::from_json(std::string_view json) {
  return read_document<KernelPolicy>(json, {"KernelPolicy::from_json", "policy text: ", "policy", policy_depth, json});
}

KernelPolicy policy_from_values(std::string_view json) {
  return read_document<KernelPolicy>(json, {"KernelPolicy", "", "policy", policy_depth});
}

std::string read_policy_text(const std::string& path) {
  return read_text_file(path, file_source(path), most_policy_bytes);
}

KernelPolicy policy_in_file(std::string_view text, const std::string& path) {
  JsonSource source = file_source(path);
  source.text = text;
  return read_document<KernelPolicy>(text, source);
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
    fail(error.code(), "policy_from_environment", std::string(variable) + ": " + std::string(error.message()));
  }
}

KernelPolicy load_policy(const std::string& explicit_path) {
  if (!explicit_path.empty()) return KernelPolicy::load(explicit_path);
  return policy_from_environment().value_or(KernelPolicy{});
}

}  // namespace xpuruntime
