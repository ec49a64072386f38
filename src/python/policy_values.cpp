#include "python/policy_values.h"

#include <limits>
#include <set>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/types.h"
#include "select/policy_check.h"

namespace xpuruntime::python {
namespace {

constexpr const char* in_kernel_policy = "KernelPolicy";

bool is_mapping(nb::handle value) { return nb::isinstance<nb::dict>(value) || nb::hasattr(value, "items"); }

nb::dict mapping_from(nb::handle value, const char* name) {
  if (is_mapping(value))
    return nb::steal<nb::dict>(PyObject_CallFunctionObjArgs((PyObject*)&PyDict_Type, value.ptr(), nullptr));
  raise_type_error("[KernelPolicy] " + std::string(name) + " must map ops to what is said of them, not be " +
                   a_python_type(value) + "; pass a dict");
}

/// Reads what the file format describes best.
KernelPolicy from_document(const nb::dict& document) {
  return policy_from_values(to_json_text(document, in_kernel_policy));
}

std::vector<std::string> kernels_from(nb::handle list, const char* name) {
  std::vector<std::string> kernels;
  for (const nb::handle kernel : list) kernels.push_back(text_from(kernel, in_kernel_policy, name));
  return kernels;
}

Strategy strategy_from(nb::handle value) {
  if (nb::isinstance<Strategy>(value)) return nb::cast<Strategy>(value);
  if (nb::isinstance<nb::str>(value)) return parse_strategy(text_from(value, in_kernel_policy, "strategy"));
  if (PyBool_Check(value.ptr()) || !PyLong_Check(value.ptr())) {
    raise_type_error("[KernelPolicy] " + a_python_type(value) +
                     " is not a strategy; pass an AutoSelectStrategy, its name, or 0, 1 or 2");
  }
  return parse_strategy(nb::cast<std::string>(nb::str(value)));
}

std::string requested_from(nb::handle value) {
  if (value.is_none()) return {};
  if (nb::isinstance<nb::str>(value)) return text_from(value, in_kernel_policy, "precision");
  return std::string(to_string(data_type_from(value)));
}

void set_requested(KernelPolicy& policy, nb::handle op, nb::handle value) {
  const std::string name = text_from(op, in_kernel_policy, "an op");
  if (!is_mapping(value)) {
    policy.set_precision(name, requested_from(value));
    return;
  }
  std::string forward, backward;
  for (const auto& [key, requested] : mapping_from(value, "precision")) {
    const std::string direction = text_from(key, in_kernel_policy, "a direction");
    constexpr std::string_view known[] = {"forward", "backward"};
    if (direction != "forward" && direction != "backward")
      fail_unknown(in_kernel_policy, "direction", direction, known);
    (direction == "forward" ? forward : backward) = requested_from(requested);
  }
  policy.set_precision(name, forward, backward);
}

void set_preferences(KernelPolicy& policy, nb::handle value) {
  std::map<OpId, KernelPreference> preferences;
  if (!value.is_none()) {
    for (const auto& [name, preference] : mapping_from(value, "preferences")) {
      const std::string given = text_from(name, in_kernel_policy, "op");
      const OpId op = parse_op(given);
      if (preferences.emplace(op, preference_from(preference, given)).second) continue;
      fail(ErrorCode::invalid_argument, in_kernel_policy,
           "preferences name " + std::string(to_string(op)) + " twice, under two of its names; remove one");
    }
  }
  policy.preferences = std::move(preferences);
}

void set_precision(KernelPolicy& policy, nb::handle value) {
  KernelPolicy made;
  if (!value.is_none()) {
    for (const auto& [op, requested] : mapping_from(value, "precision")) set_requested(made, op, requested);
  }
  policy.precision = std::move(made.precision);
}

void set_rules(KernelPolicy& policy, nb::handle value) {
  if (value.is_none()) return policy.rules.clear();
  nb::dict document;
  document["rules"] = value;
  policy.rules = from_document(document).rules;
}

void set_threads(KernelPolicy& policy, nb::handle value) {
  const std::uint64_t threads = count_from(value, in_kernel_policy, "threads");
  if (threads == 0 || threads > std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorCode::invalid_argument, in_kernel_policy,
         "threads must be a whole number, 1 or more; leave it out for no bound");
  }
  policy.threads = static_cast<std::uint32_t>(threads);
}

/// An op, where it might also be a misspelled field.
OpId op_or_unknown(const std::string& name) {
  if (const auto op = find_op(name)) return *op;
  std::vector<std::string_view> known = single_policy_fields();
  known.insert(known.begin(), {"strategy", "rules", "precision", "preferences"});
  for (const OpId op : all_ops()) known.push_back(to_string(op));
  fail_unknown(in_kernel_policy, "op or field", name, known);
}

void set_default(KernelPolicy& policy, nb::handle value) {
  KernelPolicy made;
  made.default_precision = data_type_from(value);
  made.check();
  policy.default_precision = made.default_precision;
}

}  // namespace

nb::object from_json_text(const std::string& json) {
  return nb::module_::import_("json").attr("loads")(to_python(std::string_view(json)));
}

std::string to_json_text(nb::handle value, const char* function) {
  try {
    return nb::cast<std::string>(nb::module_::import_("json").attr("dumps")(value));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError) && !error.matches(PyExc_ValueError)) throw;
    raise_type_error("[" + std::string(function) + "] " + python_str(error.value()) +
                     "; use strings, numbers, booleans, lists and dicts");
  }
}

KernelPreference preference_from(nb::handle value, const std::string& name) {
  KernelPolicy made;  // it checks the names
  if (nb::isinstance<nb::str>(value)) {
    made.set(name, text_from(value, in_kernel_policy, "a kernel"));
  } else if (nb::isinstance<nb::list>(value) || nb::isinstance<nb::tuple>(value)) {
    made.set_order(name, kernels_from(value, "a kernel"));
  } else if (is_mapping(value)) {
    nb::dict document;
    document["preferences"] = nb::dict();
    document["preferences"][to_python(std::string_view(name))] = value;
    made = from_document(document);
  } else {
    raise_type_error("[KernelPolicy] " + a_python_type(value) + " is not a valid preference for " + name +
                     "; pass a kernel's name, a list of names, or {\"kernel\": name, \"mode\": \"force\"}");
  }
  return made.preferences.begin()->second;
}

nb::object to_python(const KernelPreference& preference) {
  nb::list kernels;
  for (const std::string& kernel : preference.kernels) kernels.append(to_python(std::string_view(kernel)));
  if (preference.kernels.size() != 1) return kernels;
  if (!preference.force) return kernels[0];
  nb::dict forced;
  forced["kernel"] = kernels[0];
  forced["mode"] = "force";
  return forced;
}

bool set_field(KernelPolicy& policy, const std::string& name, nb::handle value) {
  const bool unset = value.is_none();
  if (name == "preferences") {
    set_preferences(policy, value);
  } else if (name == "rules") {
    set_rules(policy, value);
  } else if (name == "precision") {
    set_precision(policy, value);
  } else if (name == "auto_strategy" || name == "strategy") {
    policy.auto_strategy = unset ? std::nullopt : std::optional(strategy_from(value));
  } else if (name == "default_precision") {
    unset ? policy.default_precision.reset() : set_default(policy, value);
  } else if (name == "workspace_limit_bytes") {
    policy.workspace_limit_bytes =
        unset ? std::nullopt : std::optional(count_from(value, in_kernel_policy, name.c_str()));
  } else if (name == "deterministic") {
    policy.deterministic = unset ? std::nullopt : std::optional(boolean_from(value, in_kernel_policy, name.c_str()));
  } else if (name == "threads") {
    unset ? policy.threads.reset() : set_threads(policy, value);
  } else {
    return false;
  }
  return true;
}

void fill(KernelPolicy& policy, const nb::dict& values) {
  std::set<OpId> seen;
  if (values.contains("strategy") && values.contains("auto_strategy")) {
    fail(ErrorCode::invalid_argument, in_kernel_policy, "strategy and auto_strategy are the same field; give one");
  }
  if (values.contains("preferences")) set_field(policy, "preferences", values["preferences"]);
  for (const auto& [key, value] : values) {
    const std::string name = text_from(key, in_kernel_policy, "a field");
    if (name == "preferences" || set_field(policy, name, value)) continue;
    const OpId op = op_or_unknown(name);
    if (!seen.insert(op).second) {
      fail(ErrorCode::invalid_argument, in_kernel_policy,
           std::string(to_string(op)) + " is given under two of its names; give one");
    }
    policy.preferences[op] = preference_from(value, name);
  }
}

KernelPolicy policy_from(nb::handle value, const char* function) {
  if (nb::isinstance<KernelPolicy>(value)) return nb::cast<KernelPolicy>(value);
  if (nb::isinstance<nb::dict>(value)) {
    const auto given = nb::cast<nb::dict>(value);
    const bool as_in_a_file = given.contains("version") || given.contains("$schema");
    if (as_in_a_file) return KernelPolicy::from_json(to_json_text(value, function));
    KernelPolicy policy;
    fill(policy, given);
    return policy;
  }
  if (nb::isinstance<nb::str>(value) || nb::hasattr(value, "__fspath__")) {
    const std::string path = path_from(value, function);
    const WithoutGil released;
    return KernelPolicy::load(path);
  }
  raise_type_error("[" + std::string(function) + "] " + a_python_type(value) +
                   " is not a policy; pass a KernelPolicy, the path of a file, a dict, or ops as keywords");
}

}  // namespace xpuruntime::python
