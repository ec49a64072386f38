#include <limits>

#include "core/json_text.h"
#include "select/policy_rule_json.h"
#include "xpuruntime/graph/execution_policy.h"

namespace xpuruntime {
namespace {

constexpr std::string_view field_names[] = {
    "version",        "target",         "precision", "static_shape",       "fixed_shapes",        "allow_fallback",
    "optimize_level", "cache_compiled", "cache_dir", "compile_timeout_ms", "execution_timeout_ms"};
constexpr int file_version = 1;
constexpr int file_depth = 3;  // the policy, its shapes, one of them

bool read_boolean(const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_boolean()) source.refuse_field(field, "must be true or false");
  return value.get<bool>();
}

/// A whole number between two others. The reader keeps those above 2^63 apart.
std::int64_t read_integer(const Json& value, std::string_view field, const JsonSource& source, std::int64_t least,
                          std::int64_t most, const std::string& wanted) {
  const bool fits = value.is_number_integer() && value <= std::numeric_limits<std::int64_t>::max();
  if (!fits || value.get<std::int64_t>() < least || value.get<std::int64_t>() > most) {
    source.refuse_field(field, "must be " + wanted);
  }
  return value.get<std::int64_t>();
}

DeviceType read_device_type(const Json& value, std::string_view field, const JsonSource& source) {
  const std::string name = read_string(value, field, source);
  return blame_field(source, field, [&] { return parse_device_type(name); });
}

std::vector<std::vector<std::int64_t>> read_shapes(const Json& value, const std::string& field,
                                                   const JsonSource& source) {
  std::vector<std::vector<std::int64_t>> shapes;
  if (value.is_null()) return shapes;
  if (!value.is_array()) source.refuse_field(field, "must be a list of shapes, such as [[1, 3, 224, 224]]");
  for (const Json& shape : value) {
    const std::string place = field + "[" + std::to_string(shapes.size()) + "]";
    if (!shape.is_array()) source.refuse_field(place, "must be a shape: a list of whole numbers");
    std::vector<std::int64_t>& extents = shapes.emplace_back();
    for (const Json& extent : shape) {
      extents.push_back(read_integer(extent, place + "[" + std::to_string(extents.size()) + "]", source, 1,
                                     std::numeric_limits<std::int64_t>::max(), "a whole number, 1 or more"));
    }
  }
  return shapes;
}

std::int64_t read_timeout(const Json& value, std::string_view field, const JsonSource& source) {
  return read_integer(value, field, source, 1, std::numeric_limits<std::int64_t>::max(),
                      "a whole number of milliseconds, 1 or more");
}

void read_field(ExecutionPolicy& policy, const std::string& name, const Json& value, const JsonSource& source) {
  if (name == "target") {
    policy.target = read_device_type(value, name, source);
  } else if (name == "precision") {
    const std::string text = read_string(value, name, source);
    policy.precision = blame_field(source, name, [&] { return parse_engine_precision(text); });
  } else if (name == "static_shape") {
    policy.static_shape = read_boolean(value, name, source);
  } else if (name == "fixed_shapes") {
    policy.fixed_shapes = read_shapes(value, name, source);
  } else if (name == "allow_fallback") {
    if (!value.is_null()) policy.allow_fallback = read_device_type(value, name, source);
  } else if (name == "optimize_level") {
    policy.optimize_level = static_cast<int>(read_integer(value, name, source, 0, 3, "0, 1, 2 or 3"));
  } else if (name == "cache_compiled") {
    policy.cache_compiled = read_boolean(value, name, source);
  } else if (name == "cache_dir") {
    policy.cache_dir = read_string(value, name, source);
  } else if (name == "compile_timeout_ms") {
    policy.compile_timeout_ms = read_timeout(value, name, source);
  } else if (name == "execution_timeout_ms") {
    policy.execution_timeout_ms = read_timeout(value, name, source);
  } else if (name == "$schema") {
    read_string(value, name, source);  // for editors; it says nothing to us
  } else if (name == "version") {
    if (value != file_version) source.refuse_field(name, "must be 1, the only version there is");
  } else {
    source.refuse_unknown(name, field_names);
  }
}

ExecutionPolicy parse_policy(std::string_view text, const JsonSource& source) {
  const Json json = parse_json(text, source);
  if (!json.is_object()) {
    source.refuse(ErrorCode::invalid_argument, "an execution policy is a JSON object; put its fields in braces");
  }
  ExecutionPolicy policy;
  for (const auto& [name, value] : json.items()) read_field(policy, name, value, source);
  if (policy.static_shape && policy.fixed_shapes.empty()) {
    source.refuse_field("static_shape", "is true, and there fixed_shapes is required; add the shape of each input");
  }
  blame_field(source, "fixed_shapes", [&] { policy.check(); });
  return policy;
}

JsonSource source_of(std::string_view function, const std::string& prefix, std::string_view text = {}) {
  return {function, prefix, "policy", file_depth, text};
}

}  // namespace

std::string ExecutionPolicy::to_json() const {
  check();
  // No version: readers of the seed take no field that is not theirs, and without one it is the first.
  const Json json = {{"target", to_string(target)},
                     {"precision", engine_precision_name(precision)},
                     {"static_shape", static_shape},
                     {"fixed_shapes", fixed_shapes},
                     {"allow_fallback", allow_fallback ? Json(to_string(*allow_fallback)) : Json(nullptr)},
                     {"optimize_level", optimize_level},
                     {"cache_compiled", cache_compiled},
                     {"cache_dir", cache_dir},
                     {"compile_timeout_ms", compile_timeout_ms},
                     {"execution_timeout_ms", execution_timeout_ms}};
  // A folder's name may be any bytes; what is not UTF-8 is replaced, never an error.
  return dump_json(json, 2) + "\n";
}

ExecutionPolicy ExecutionPolicy::from_json(std::string_view json) {
  return parse_policy(json, source_of("ExecutionPolicy::from_json", "execution policy text: ", json));
}

ExecutionPolicy ExecutionPolicy::load(const std::string& path) {
  JsonSource source = source_of("ExecutionPolicy::load", "execution policy file '" + path + "': ");
  const std::string text = read_text_file(path, source);
  source.text = text;
  return parse_policy(text, source);
}

void ExecutionPolicy::save(const std::string& path) const {
  write_file_atomically(path, to_json(), source_of("ExecutionPolicy::save", "execution policy file '" + path + "': "));
}

}  // namespace xpuruntime
