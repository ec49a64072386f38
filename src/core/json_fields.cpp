#include "core/json_fields.h"

#include <cmath>

namespace xpuruntime {

JsonValue JsonValue::field(std::string_view name, const Json& value) const {
  return {value, place.empty() ? std::string(name) : place + "." + std::string(name), source};
}

JsonValue JsonValue::element(std::size_t index) const {
  return {json[index], place + "[" + std::to_string(index) + "]", source};
}

void read_value(bool& to, const JsonValue& from) {
  if (!from.json.is_boolean()) from.refuse("must be true or false; correct the value");
  to = from.json.get<bool>();
}

void read_value(std::string& to, const JsonValue& from) {
  if (!from.json.is_string()) from.refuse("must be a string; put it in double quotes");
  to = from.json.get<std::string>();
}

void read_value(double& to, const JsonValue& from) {
  to = from.json.is_number() ? from.json.get<double>() : -1;
  if (!std::isfinite(to) || to < 0) from.refuse("must be a number, 0 or more; correct the value");
}

void read_value(float& to, const JsonValue& from) {
  const double number = from.json.is_number() ? from.json.get<double>() : 0;
  // Past f32 a conversion would not be defined.
  if (!(number > 0) || number > double{std::numeric_limits<float>::max()}) {
    from.refuse("must be a number over 0 that fits f32; correct the value");
  }
  to = static_cast<float>(number);
}

void read_value(std::int64_t& to, const JsonValue& from) {
  // To the parser's own comparison a number past 63 bits is a negative one.
  constexpr auto most = std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  const bool too_large = from.json.is_number_unsigned() && from.json.get<std::uint64_t>() > most;
  if (!from.json.is_number_integer() || too_large) {
    from.refuse("must be a whole number of 64 bits; correct the value");
  }
  to = from.json.get<std::int64_t>();
}

void read_value(DeviceType& to, const JsonValue& from) { to = from.parsed(parse_device_type); }

void read_value(std::map<std::string, std::string>& to, const JsonValue& from) {
  if (!from.json.is_object()) from.refuse("must map names to strings; put it in braces");
  to.clear();
  for (const auto& [name, value] : from.json.items()) read_value(to[name], from.field(name, value));
}

std::uint64_t read_whole(const JsonValue& from, std::uint64_t least, std::uint64_t most, const std::string& wanted) {
  // Whole numbers from 0 up are `unsigned` to the parser; anything past 64 bits becomes a float there.
  const std::uint64_t number = from.json.is_number_unsigned() ? from.json.get<std::uint64_t>() : 0;
  if (from.json.is_number_unsigned() && number >= least && number <= most) return number;
  from.refuse("must be " + (!wanted.empty() ? wanted
                                            : "a whole number from " + std::to_string(least) + " to " +
                                                  std::to_string(most) + "; correct the value"));
}

void check_version(const JsonValue& value, int latest) {
  std::string known = "1";
  for (int version = 1; version <= latest; ++version) {
    if (value.json == version) return;
    if (version > 1) known += (version == latest ? " or " : ", ") + std::to_string(version);
  }
  value.refuse("must be " + known + (latest == 1 ? ", the only version there is" : "") +
               "; write the file again with this version of the library");
}

void check_object(const JsonValue& value) {
  if (value.json.is_object()) return;
  if (!value.place.empty()) value.refuse("must be an object; put its fields in braces");
  value.source.refuse(ErrorCode::invalid_argument,
                      "a " + std::string(value.source.kind) + " is a JSON object; put its fields in braces");
}

void check_names(const JsonValue& object, std::span<const std::string_view> known) {
  for (const auto& [name, value] : object.json.items()) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      object.source.refuse_unknown(object.field(name, value).place, known);
    }
  }
}

}  // namespace xpuruntime
