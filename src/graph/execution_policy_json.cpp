#include "graph/execution_policy_json.h"

#include <algorithm>
#include <limits>

#include "core/json_fields.h"
#include "xpuruntime/graph/execution_policy.h"

namespace xpuruntime {
namespace {

constexpr int file_depth = 3;  // the policy, its shapes, one of them
constexpr auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()};

void read_shapes(ExecutionPolicy& policy, const JsonValue& from) {
  policy.fixed_shapes.clear();
  if (from.json.is_null()) return;
  if (!from.json.is_array()) from.refuse("must be a list of shapes, such as [[1, 3, 224, 224]]");
  for (std::size_t i = 0; i < from.json.size(); ++i) {
    const JsonValue shape = from.element(i);
    if (!shape.json.is_array()) shape.refuse("must be a shape: a list of whole numbers");
    std::vector<std::int64_t>& extents = policy.fixed_shapes.emplace_back();
    for (std::size_t j = 0; j < shape.json.size(); ++j) {
      extents.push_back(static_cast<std::int64_t>(read_whole(shape.element(j), 1, most, "a whole number, 1 or more")));
    }
  }
}

template <std::int64_t ExecutionPolicy::*member>
constexpr FieldRow<ExecutionPolicy> timeout(std::string_view name) {
  auto row = field<member>(name);
  row.read = [](ExecutionPolicy& policy, const JsonValue& from) {
    policy.*member = static_cast<std::int64_t>(read_whole(from, 1, most, "a whole number of milliseconds, 1 or more"));
  };
  return row;
}

}  // namespace

template <>
struct FieldsOf<ExecutionPolicy> {
  using P = ExecutionPolicy;
  // No version is written: readers of the seed take no field that is not theirs, and without one it is the first.
  static constexpr FieldRow<P> rows[] = {
      version_field<P, 1>(),
      schema_field<P>(),
      field<&P::target>("target"),
      {"precision", [](P& policy, const JsonValue& from) { policy.precision = from.parsed(parse_engine_precision); },
       [](const P& policy) { return Json(engine_precision_name(policy.precision)); }},
      field<&P::static_shape>("static_shape"),
      {"fixed_shapes", read_shapes, field<&P::fixed_shapes>("").write},
      {"allow_fallback",
       [](P& policy, const JsonValue& from) {
         if (!from.json.is_null()) read_value(policy.allow_fallback, from);
       },
       [](const P& policy) { return policy.allow_fallback ? Json(to_string(*policy.allow_fallback)) : Json(nullptr); }},
      {"optimize_level",
       [](P& policy, const JsonValue& from) {
         policy.optimize_level = static_cast<int>(read_whole(from, 0, 3, "0, 1, 2 or 3"));
       },
       field<&P::optimize_level>("").write},
      field<&P::cache_compiled>("cache_compiled"),
      field<&P::cache_dir>("cache_dir"),
      timeout<&P::compile_timeout_ms>("compile_timeout_ms"),
      timeout<&P::execution_timeout_ms>("execution_timeout_ms"),
      // Left out where it is the usual: readers of the seed take no field that is not theirs.
      {"engine", field<&P::engine>("").read,
       [](const P& policy) { return policy.engine == "auto" ? left_out() : Json(policy.engine); }},
  };
};

namespace {

ExecutionPolicy parse_policy(std::string_view text, const JsonSource& source) {
  const auto policy = read_document<ExecutionPolicy>(text, source);
  if (policy.static_shape && policy.fixed_shapes.empty()) {
    source.refuse_field("static_shape", "is true, and there fixed_shapes is required; add the shape of each input");
  }
  JsonValue{{}, "fixed_shapes", source}.blamed([&] { policy.check(); });
  return policy;
}

JsonSource source_of(std::string_view function, const std::string& prefix, std::string_view text = {}) {
  return {function, prefix, "policy", file_depth, text};
}

}  // namespace

bool is_execution_policy(std::string_view text) {
  try {
    const Json json = parse_json(text, source_of("ExecutionPolicy::from_json", {}));
    const auto has_own = [&](const auto& row) {
      const bool is_shared = row.name == "version" || row.name == "$schema" || row.name == "precision";
      return !is_shared && json.contains(row.name);
    };
    if (!json.is_object()) return false;
    const auto precision = json.find("precision");  // a kernel policy has an object there
    return std::any_of(std::begin(FieldsOf<ExecutionPolicy>::rows), std::end(FieldsOf<ExecutionPolicy>::rows),
                       has_own) ||
           (precision != json.end() && precision->is_string());
  } catch (const Error&) {
    return false;
  }
}

std::string ExecutionPolicy::to_json() const {
  check();
  // A folder's name may be any bytes; what is not UTF-8 is replaced, never an error.
  return dump_json(written(*this), 2) + "\n";
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
