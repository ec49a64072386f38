#include "xpuruntime/select/policy.h"

#include <algorithm>
#include <cctype>

#include "core/json_text.h"
#include "select/unavailable.h"

namespace xpuruntime {
namespace {

constexpr std::string_view strategy_names[] = {"first_supported", "best_performance", "lowest_memory"};
constexpr std::string_view field_names[] = {
    "version",           "preferences",           "precision",     "auto_strategy", "strategy",
    "default_precision", "workspace_limit_bytes", "deterministic", "threads"};
constexpr int policy_version = 1;

/// FirstSupported and first_supported are the same word.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c != '_') out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return out;
}

std::string message_of(const Error& error) {
  const std::string_view text = error.what();
  const auto end = text.find("] ");
  return std::string(end == text.npos ? text : text.substr(end + 2));
}

/// Parses with a function that throws on its own behalf and blames the field instead.
template <class Parse>
auto blame_field(const JsonSource& source, std::string_view field, Parse&& parse) {
  try {
    return parse();
  } catch (const Error& error) {
    source.refuse_field(field, "is wrong: " + message_of(error));
  }
}

DataType checked_default(DataType dtype) {
  if (is_float_storage(dtype)) return dtype;
  fail(ErrorCode::invalid_argument, "KernelPolicy",
       "the default precision " + std::string(to_string(dtype)) +
           " is no float type that tensors are stored in; give f32, f16, bf16 or f64");
}

std::string read_string(const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_string()) source.refuse_field(field, "must be a text; put it in double quotes");
  return value.get<std::string>();
}

Strategy read_strategy(const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_number_integer() && !value.is_string()) {
    source.refuse_field(field, "must be a strategy's name in double quotes, or 0, 1 or 2");
  }
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
  return blame_field(source, field, [&] { return parse_strategy(name); });
}

std::vector<std::string> read_order(const Json& value, const std::string& field, const JsonSource& source) {
  std::vector<std::string> kernels;
  for (const Json& element : value) kernels.push_back(read_string(element, field, source));
  if (kernels.empty()) source.refuse_field(field, "is an empty list; name a kernel or remove the field");
  return kernels;
}

KernelPreference read_preference(const Json& value, const std::string& field, const JsonSource& source) {
  if (value.is_string()) return {{value.get<std::string>()}, false};
  if (value.is_array()) return {read_order(value, field, source), false};
  if (!value.is_object()) source.refuse_field(field, "must be a kernel's name, a list of names, or an object");
  KernelPreference preference;
  for (const auto& [name, element] : value.items()) {
    constexpr std::string_view known[] = {"kernel", "mode"};
    const std::string place = field + "." + name;
    if (name == "kernel") {
      preference.kernels = {read_string(element, place, source)};
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
    KernelPreference preference = read_preference(element, field, source);
    for (const std::string& kernel : preference.kernels) {
      blame_field(source, field, [&] {
        check_kernel_name("KernelPolicy", op, kernel);
        return 0;
      });
    }
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

void read_field(KernelPolicy& policy, const std::string& name, const Json& value, const JsonSource& source) {
  if (name == "preferences") {
    read_preferences(policy, value, source);
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

constexpr int policy_depth = 3;  // the policy, its preferences, one preference

}  // namespace

std::string_view to_string(Strategy strategy) { return strategy_names[static_cast<std::size_t>(strategy)]; }

Strategy parse_strategy(std::string_view name) {
  for (std::size_t i = 0; i < std::size(strategy_names); ++i) {
    if (folded(name) == folded(strategy_names[i]) || name == std::to_string(i)) return static_cast<Strategy>(i);
  }
  fail_unknown("parse_strategy", "strategy", name, strategy_names);
}

KernelPolicy& KernelPolicy::set(std::string_view op, std::string_view kernel) {
  return set_order(op, {std::string(kernel)});
}

KernelPolicy& KernelPolicy::set_order(std::string_view op, const std::vector<std::string>& kernels) {
  if (kernels.empty()) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::set_order", "no kernel is named; name at least one");
  }
  const OpId id = parse_op(op);
  for (const std::string& kernel : kernels) check_kernel_name("KernelPolicy::set", id, kernel);
  preferences[id] = {kernels, false};
  return *this;
}

KernelPolicy& KernelPolicy::force(std::string_view op, std::string_view kernel) {
  const OpId id = parse_op(op);
  check_kernel_name("KernelPolicy::force", id, kernel);
  preferences[id] = {{std::string(kernel)}, true};
  return *this;
}

const KernelPreference* KernelPolicy::get(std::string_view op) const {
  const auto found = preferences.find(parse_op(op));
  return found == preferences.end() ? nullptr : &found->second;
}

bool KernelPolicy::remove(std::string_view op) { return preferences.erase(parse_op(op)) != 0; }

KernelPolicy& KernelPolicy::set_precision(std::string_view op, std::string_view forward, std::string_view backward) {
  const OpId id = parse_op(op);
  if (forward.empty() && backward.empty()) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::set_precision", "no direction is named; name one, or remove it");
  }
  DirectionWishes wishes;
  if (!forward.empty()) wishes.forward = parse_precision_wish(forward);
  if (!backward.empty()) wishes.backward = parse_precision_wish(backward);
  precision[id] = wishes;
  return *this;
}

bool KernelPolicy::remove_precision(std::string_view op) { return precision.erase(parse_op(op)) != 0; }

void KernelPolicy::check() const {
  if (threads == 0u) {
    fail(ErrorCode::invalid_argument, "KernelPolicy::check", "0 threads do no work; give 1 or more, or leave it unset");
  }
  if (default_precision) checked_default(*default_precision);
  for (const auto& [op, wishes] : precision) {
    if (!wishes.forward && !wishes.backward) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "the precision of " + std::string(to_string(op)) + " says nothing; name a direction, or remove it");
    }
    OpPrecisionRule::make(op, wishes.forward.value_or(PrecisionWish()), wishes.backward.value_or(PrecisionWish()))
        .check();
  }
  for (const auto& [op, preference] : preferences) {
    const std::string name(to_string(op));
    if (preference.kernels.empty()) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "the preference for " + name + " names no kernel; name one");
    }
    if (preference.force && preference.kernels.size() > 1) {
      fail(ErrorCode::invalid_argument, "KernelPolicy::check",
           "several kernels are forced for " + name + "; force one, or give them as an order");
    }
    for (const std::string& kernel : preference.kernels) check_kernel_name("KernelPolicy::check", op, kernel);
  }
}

KernelPolicy KernelPolicy::merge(const KernelPolicy& other) const {
  KernelPolicy merged = *this;
  for (const auto& [op, preference] : other.preferences) merged.preferences[op] = preference;
  for (const auto& [op, wishes] : other.precision) merged.precision[op] = wishes;
  if (other.auto_strategy) merged.auto_strategy = other.auto_strategy;
  if (other.default_precision) merged.default_precision = other.default_precision;
  if (other.workspace_limit_bytes) merged.workspace_limit_bytes = other.workspace_limit_bytes;
  if (other.deterministic) merged.deterministic = other.deterministic;
  if (other.threads) merged.threads = other.threads;
  return merged;
}

std::string KernelPolicy::to_json() const {
  Json json = {{"preferences", Json::object()}};
  for (const auto& [op, preference] : preferences) {
    if (preference.kernels.empty()) continue;  // it wishes for nothing
    json["preferences"][std::string(to_string(op))] = preference_to_json(preference);
  }
  for (const auto& [op, wishes] : precision) {
    json["precision"][std::string(to_string(op))] = precision_to_json(wishes);
  }
  if (auto_strategy) json["auto_strategy"] = to_string(*auto_strategy);
  if (default_precision) json["default_precision"] = to_string(*default_precision);
  if (workspace_limit_bytes) json["workspace_limit_bytes"] = *workspace_limit_bytes;
  if (deterministic) json["deterministic"] = *deterministic;
  if (threads) json["threads"] = *threads;
  return json.dump(2) + "\n";
}

KernelPolicy KernelPolicy::from_json(std::string_view json) {
  return parse_policy(json, {"KernelPolicy::from_json", "policy text: ", "policy", policy_depth});
}

KernelPolicy KernelPolicy::load(const std::string& path) {
  const JsonSource source = {"KernelPolicy::load", "policy file '" + path + "': ", "policy", policy_depth};
  return parse_policy(read_text_file(path, source), source);
}

void KernelPolicy::save(const std::string& path) const {
  write_file_atomically(path, to_json(), {"KernelPolicy::save", "policy file '" + path + "': ", "policy"});
}

}  // namespace xpuruntime
