#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/json_text.h"
#include "xpuruntime/core/device.h"

// Structs as JSON objects. A struct has one table of its fields, FieldsOf; reading, writing and the list of known names
// come from it.

namespace xpuruntime {

/// A value that is being read, and how errors name it: "rules[1].when.m". No place: the document itself.
struct JsonValue {
  const Json& json;
  std::string place = {};
  const JsonSource& source;

  [[noreturn]] void refuse(const std::string& message) const { source.refuse_field(place, message); }
  JsonValue field(std::string_view name, const Json& value) const;
  JsonValue element(std::size_t index) const;

  template <class T>
  T as() const {
    T value = {};
    read_value(value, *this);
    return value;
  }

  /// Calls a function that throws on its own behalf, and blames the field instead.
  template <class Parse>
  auto blamed(Parse&& parse) const {
    try {
      return parse();
    } catch (const Error& error) {
      refuse("is wrong: " + std::string(error.message()));
    }
  }
  /// What a text means to such a function.
  template <class Parse>
  auto parsed(Parse&& parse) const {
    return blamed([&, text = as<std::string>()] { return parse(text); });
  }
};

// ---- one value: what is not of the type is refused ----

void read_value(bool& to, const JsonValue& from);
void read_value(std::string& to, const JsonValue& from);
void read_value(double& to, const JsonValue& from);  // 0 or more
void read_value(float& to, const JsonValue& from);   // over 0
void read_value(std::int64_t& to, const JsonValue& from);
void read_value(DeviceType& to, const JsonValue& from);
void read_value(std::map<std::string, std::string>& to, const JsonValue& from);

/// A whole number in these bounds. `wanted`: what the error asks for, where the bounds do not say it all.
std::uint64_t read_whole(const JsonValue& from, std::uint64_t least, std::uint64_t most,
                         const std::string& wanted = {});

template <std::integral T>
void read_value(T& to, const JsonValue& from) {
  to = static_cast<T>(read_whole(from, 0, std::uint64_t{std::numeric_limits<T>::max()}));
}

template <class T>
void read_value(std::optional<T>& to, const JsonValue& from) {
  read_value(to.emplace(), from);
}

template <class T>
void read_value(std::vector<T>& to, const JsonValue& from) {
  if (!from.json.is_array()) from.refuse("must be a list; put it in square brackets");
  to.clear();
  while (to.size() < from.json.size()) {
    const JsonValue element = from.element(to.size());
    read_value(to.emplace_back(), element);
  }
}

/// Stands for a field that is not written.
inline Json left_out() { return Json(Json::value_t::discarded); }

template <class T>
Json write_value(const T& value) {
  return value;
}
inline Json write_value(const DeviceType& value) { return to_string(value); }
template <class T>
Json write_value(const std::optional<T>& value) {
  return value ? write_value(*value) : left_out();
}

/// The table of a struct: `template <> struct FieldsOf<Thing> { static constexpr FieldRow<Thing> rows[] = {...}; };`
template <class Object>
struct FieldsOf;

template <class T>
concept HasFields = requires {
  FieldsOf<T>::rows;
};

template <HasFields T>
Json write_value(const T& value);
template <HasFields T>
Json write_value(const std::vector<T>& list);

// ---- the table ----

enum class Presence { optional, required };

/// A field of a struct. They are read in the order of the table, and written in it.
template <class Object>
struct FieldRow {
  std::string_view name = {};
  void (*read)(Object&, const JsonValue&) = nullptr;
  Json (*write)(const Object&) = nullptr;  // null where it is only read
  Presence presence = Presence::optional;
};

template <class Member>
struct OwnerOf;
template <class Object, class T>
struct OwnerOf<T Object::*> {
  using Type = Object;
};

/// A member, or a member of a member: field<&State::config, &Config::scale>("scale").
template <auto first, auto... rest>
constexpr auto field(std::string_view name, Presence presence = Presence::optional) {
  using Object = typename OwnerOf<decltype(first)>::Type;
  return FieldRow<Object>{name,
                          [](Object& object, const JsonValue& from) { read_value(((object.*first).*....*rest), from); },
                          [](const Object& object) { return write_value(((object.*first).*....*rest)); }, presence};
}

template <auto... members>
constexpr auto required_field(std::string_view name) {
  return field<members...>(name, Presence::required);
}

/// A text that is left out where it is empty.
template <auto member>
constexpr auto text_or_nothing(std::string_view name) {
  auto row = field<member>(name);
  using Object = typename OwnerOf<decltype(member)>::Type;
  row.write = [](const Object& object) { return (object.*member).empty() ? left_out() : Json(object.*member); };
  return row;
}

/// Fails unless the version is one from 1 to `latest`.
void check_version(const JsonValue& value, int latest);

/// The version of a format of which those from 1 to `latest` can be read. The caller, who knows it, writes it.
template <class Object, int latest>
constexpr FieldRow<Object> version_field(Presence presence = Presence::optional) {
  return {"version", [](Object&, const JsonValue& from) { check_version(from, latest); }, nullptr, presence};
}

/// For editors; it says nothing to us.
template <class Object>
constexpr FieldRow<Object> schema_field() {
  return {"$schema", [](Object&, const JsonValue& from) { from.as<std::string>(); }};
}

// ---- the object ----

/// Fails unless it is an object.
void check_object(const JsonValue& value);
/// Fails where the object has other names than these.
void check_names(const JsonValue& object, std::span<const std::string_view> known);

template <class Object>
auto names_of_fields() {
  constexpr auto& rows = FieldsOf<Object>::rows;
  std::array<std::string_view, std::size(rows)> names;
  std::transform(std::begin(rows), std::end(rows), names.begin(), [](const auto& row) { return row.name; });
  return names;
}

template <class Object>
void read_fields(Object& object, const JsonValue& from) {
  check_object(from);
  for (const FieldRow<Object>& row : FieldsOf<Object>::rows) {
    const auto found = from.json.find(row.name);
    if (found != from.json.end()) {
      row.read(object, from.field(row.name, *found));
    } else if (row.presence == Presence::required) {
      from.field(row.name, from.json).refuse("is missing; " + std::string(from.source.remedy));
    }
  }
  check_names(from, names_of_fields<Object>());
}

template <class Object>
Object read_document(std::string_view text, const JsonSource& source) {
  const Json json = parse_json(text, source);
  const JsonValue document = {json, {}, source};
  Object object = {};
  check_object(document);
  // What it is shows in its version and in its names: these come before any value.
  const FieldRow<Object>& first = FieldsOf<Object>::rows[0];
  if (first.name == "version" && json.contains("version")) {
    first.read(object, document.field("version", json["version"]));
  }
  check_names(document, names_of_fields<Object>());
  read_fields(object, document);
  return object;
}

/// Adds the fields to `json`, which may hold others.
template <class Object>
Json written(const Object& object, Json json = Json::object()) {
  for (const FieldRow<Object>& row : FieldsOf<Object>::rows) {
    if (row.write == nullptr) continue;
    if (Json value = row.write(object); !value.is_discarded()) json[std::string(row.name)] = std::move(value);
  }
  return json;
}

// ---- objects in objects ----

template <HasFields T>
void read_value(T& to, const JsonValue& from) {
  read_fields(to, from);
}

template <HasFields T>
Json write_value(const T& value) {
  return written(value);
}

template <HasFields T>
Json write_value(const std::vector<T>& list) {
  Json array = Json::array();
  for (const T& element : list) array.push_back(written(element));
  return array;
}

}  // namespace xpuruntime
