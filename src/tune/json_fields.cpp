#include "tune/json_fields.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/json_text.h"

namespace xpuruntime {

JsonFields::JsonFields(const Json& object, std::string place, const JsonSource& source)
    : object_(object), place_(std::move(place)), source_(source) {
  if (object_.is_object()) return;
  if (place_.empty()) source_.refuse(ErrorCode::invalid_argument, "must be a JSON object; put its fields in braces");
  source_.refuse_field(place_, "must be an object; put its fields in braces");
}

std::string JsonFields::place_of(std::string_view name) const {
  return place_.empty() ? std::string(name) : place_ + "." + std::string(name);
}

const Json& JsonFields::value(std::string_view name) {
  known_.push_back(name);
  const auto found = object_.find(std::string(name));
  if (found == object_.end()) source_.refuse_field(place_of(name), "is missing; add it");
  return *found;
}

std::string JsonFields::text(std::string_view name) {
  const Json& found = value(name);
  if (!found.is_string()) source_.refuse_field(place_of(name), "must be a text; put it in double quotes");
  return found.get<std::string>();
}

std::string JsonFields::text_or_empty(std::string_view name) {
  if (object_.contains(std::string(name))) return text(name);
  known_.push_back(name);
  return {};
}

double JsonFields::number(std::string_view name) {
  const Json& found = value(name);
  const double number = found.is_number() ? found.get<double>() : -1;
  if (!std::isfinite(number) || number < 0) {
    source_.refuse_field(place_of(name), "must be a number, 0 or more; correct the value");
  }
  return number;
}

std::int64_t JsonFields::integer(std::string_view name) {
  const Json& found = value(name);
  const bool too_large = found.is_number_unsigned() &&
                         found.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!found.is_number_integer() || too_large) {
    source_.refuse_field(place_of(name), "must be a whole number of 64 bits; correct the value");
  }
  return found.get<std::int64_t>();
}

std::uint64_t JsonFields::whole(std::string_view name) {
  const Json& found = value(name);
  if (!found.is_number_unsigned()) {
    source_.refuse_field(place_of(name), "must be a whole number, 0 or more; correct the value");
  }
  return found.get<std::uint64_t>();
}

bool JsonFields::boolean(std::string_view name) {
  const Json& found = value(name);
  if (!found.is_boolean()) source_.refuse_field(place_of(name), "must be true or false; correct the value");
  return found.get<bool>();
}

std::map<std::string, std::string> JsonFields::texts(std::string_view name) {
  const Json& found = value(name);
  if (!found.is_object()) source_.refuse_field(place_of(name), "must map names to texts; put it in braces");
  std::map<std::string, std::string> texts;
  for (const auto& [key, element] : found.items()) {
    if (!element.is_string()) {
      source_.refuse_field(place_of(name) + "." + key, "must be a text; put it in double quotes");
    }
    texts[key] = element.get<std::string>();
  }
  return texts;
}

const Json& JsonFields::list(std::string_view name) {
  const Json& found = value(name);
  if (!found.is_array()) source_.refuse_field(place_of(name), "must be a list; put it in square brackets");
  return found;
}

void JsonFields::done() const {
  for (const auto& [name, element] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), name) == known_.end()) source_.refuse_unknown(place_of(name), known_);
  }
}

std::string as_utf8(const std::string& text) { return parse_known_json(dump_json(Json(text))).get<std::string>(); }

}  // namespace xpuruntime
