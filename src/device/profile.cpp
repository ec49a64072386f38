#include "xpuruntime/device/profile.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/json_text.h"

namespace xpuruntime {
namespace {

constexpr int format_version = 1;
constexpr int profile_depth = 2;  // the profile and its lists

// ---- one value ----

std::uint64_t read_number(const Json& value, std::uint64_t most, std::string_view field, const JsonSource& source) {
  // Whole numbers from 0 up are `unsigned` to the parser; anything past 64 bits becomes a float there.
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most) {
    source.refuse_field(field, "must be a whole number from 0 to " + std::to_string(most) + "; correct the value");
  }
  return value.get<std::uint64_t>();
}

template <class T>
requires std::is_integral_v<T>
void read_value(T& to, const Json& value, std::string_view field, const JsonSource& source) {
  to = static_cast<T>(read_number(value, static_cast<std::uint64_t>(std::numeric_limits<T>::max()), field, source));
}

void read_value(bool& to, const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_boolean()) source.refuse_field(field, "must be true or false; correct the value");
  to = value.get<bool>();
}

void read_value(std::string& to, const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_string()) source.refuse_field(field, "must be a text; put it in double quotes");
  to = value.get<std::string>();
}

void read_value(DeviceType& to, const Json& value, std::string_view field, const JsonSource& source) {
  std::string name;
  read_value(name, value, field, source);
  try {
    to = parse_device_type(name);
  } catch (const Error& error) {
    const std::string_view text = error.what();
    const auto end = text.find("] ");
    source.refuse_field(field, "is wrong: " + std::string(end == text.npos ? text : text.substr(end + 2)));
  }
}

template <class T>
void read_value(std::vector<T>& to, const Json& value, std::string_view field, const JsonSource& source) {
  if (!value.is_array()) source.refuse_field(field, "must be a list; put it in square brackets");
  to.clear();
  for (const Json& element : value) {
    const std::string place = std::string(field) + "[" + std::to_string(to.size()) + "]";
    read_value(to.emplace_back(), element, place, source);
  }
}

void read_value(std::map<std::string, std::string>& to, const Json& value, std::string_view field,
                const JsonSource& source) {
  if (!value.is_object()) source.refuse_field(field, "must map names to texts; put it in braces");
  to.clear();
  for (const auto& [key, element] : value.items()) {
    read_value(to[key], element, std::string(field) + "." + key, source);
  }
}

template <class T>
Json write_value(const T& value) {
  return value;
}
Json write_value(const DeviceType& value) { return to_string(value); }

// ---- the fields ----

struct Field {
  std::string_view name = {};
  void (*read)(DeviceProfile&, const Json&, std::string_view, const JsonSource&) = nullptr;
  Json (*write)(const DeviceProfile&) = nullptr;
};

template <auto member>
constexpr Field field(std::string_view name) {
  return {name,
          [](DeviceProfile& profile, const Json& value, std::string_view field_name, const JsonSource& source) {
            read_value(profile.*member, value, field_name, source);
          },
          [](const DeviceProfile& profile) { return write_value(profile.*member); }};
}

// Reading, writing and the list of known names are one table: a field cannot be in one and not in the others.
using P = DeviceProfile;
constexpr Field fields[] = {
    field<&P::type>("type"),
    field<&P::vendor>("vendor"),
    field<&P::name>("name"),
    field<&P::driver_version>("driver_version"),
    field<&P::library_versions>("library_versions"),
    field<&P::compute_capability_major>("compute_capability_major"),
    field<&P::compute_capability_minor>("compute_capability_minor"),
    field<&P::compute_units>("compute_units"),
    field<&P::integrated>("integrated"),
    field<&P::global_memory_bytes>("global_memory_bytes"),
    field<&P::local_memory_bytes>("local_memory_bytes"),
    field<&P::l1_bytes>("l1_bytes"),
    field<&P::l2_bytes>("l2_bytes"),
    field<&P::l3_bytes>("l3_bytes"),
    field<&P::cache_line_bytes>("cache_line_bytes"),
    field<&P::max_work_group_size>("max_work_group_size"),
    field<&P::max_work_item_sizes>("max_work_item_sizes"),
    field<&P::sub_group_size>("sub_group_size"),
    field<&P::fp16>("fp16"),
    field<&P::bf16>("bf16"),
    field<&P::fp64>("fp64"),
    field<&P::int8>("int8"),
    field<&P::fp8>("fp8"),
    field<&P::tensor_cores>("tensor_cores"),
    field<&P::cpu_features>("cpu_features"),
    field<&P::extensions>("extensions"),
};

[[noreturn]] void refuse_unknown_field(const std::string& name, const JsonSource& source) {
  std::vector<std::string_view> known = {"version"};
  for (const Field& f : fields) known.push_back(f.name);
  source.refuse_unknown(name, known);
}

// ---- the text ----

void check_version(const Json& value, const JsonSource& source) {
  if (value != format_version) {
    source.refuse_field("version", "is " + shown(dump_json(value)) +
                                       ", and only 1 can be read here; write the profile anew with this version");
  }
}

void read_field(DeviceProfile& profile, const std::string& name, const Json& value, const JsonSource& source) {
  const auto found = std::find_if(std::begin(fields), std::end(fields), [&](const Field& f) { return f.name == name; });
  if (found == std::end(fields)) refuse_unknown_field(name, source);
  found->read(profile, value, name, source);
}

DeviceProfile parse_profile(std::string_view text, const JsonSource& source) {
  const Json json = parse_json(text, source);
  if (!json.is_object()) {
    source.refuse(ErrorCode::invalid_argument, "a profile is a JSON object; put its fields in braces");
  }
  if (json.contains("version")) check_version(json["version"], source);
  DeviceProfile profile;
  for (const auto& [name, value] : json.items()) {
    if (name != "version") read_field(profile, name, value, source);
  }
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::any_of(profile.vendor.begin(), profile.vendor.end(), upper)) {
    source.refuse_field("vendor", "is '" + shown(profile.vendor) + "'; write it in lower case, as rules compare it");
  }
  return profile;
}

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

bool DeviceProfile::has_cpu_feature(std::string_view feature) const { return contains(cpu_features, feature); }

bool DeviceProfile::has_extension(std::string_view extension) const { return contains(extensions, extension); }

std::string DeviceProfile::to_json() const {
  Json json = {{"version", format_version}};
  for (const Field& f : fields) json[std::string(f.name)] = f.write(*this);
  // A driver may print anything as its name; bytes that are not UTF-8 are replaced, never an error.
  return dump_json(json, 2) + "\n";
}

DeviceProfile DeviceProfile::from_json(std::string_view json) {
  return parse_profile(json, {"DeviceProfile::from_json", "profile text: ", "profile", profile_depth, json});
}

DeviceProfile DeviceProfile::load(const std::string& path) {
  JsonSource source = {"DeviceProfile::load", "profile file '" + path + "': ", "profile", profile_depth};
  const std::string text = read_text_file(path, source);
  source.text = text;
  return parse_profile(text, source);
}

}  // namespace xpuruntime
