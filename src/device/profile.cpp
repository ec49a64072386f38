#include "xpuruntime/device/profile.h"

#include <algorithm>

#include "core/json_fields.h"
#include "device/profile_text.h"

namespace xpuruntime {
namespace {

constexpr int profile_depth = 2;  // the profile and its lists

bool contains(const std::vector<std::string>& list, std::string_view wanted) {
  return std::find(list.begin(), list.end(), wanted) != list.end();
}

}  // namespace

template <>
struct FieldsOf<DeviceProfile> {
  using P = DeviceProfile;
  static constexpr FieldRow<P> rows[] = {
      version_field<P, 1>(),
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
};

DeviceProfile parse_profile(std::string_view text, const JsonSource& source) {
  const auto profile = read_document<DeviceProfile>(text, source);
  const auto upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  if (std::any_of(profile.vendor.begin(), profile.vendor.end(), upper)) {
    source.refuse_field("vendor", "is '" + shown(profile.vendor) + "'; write it in lower case, as rules compare it");
  }
  return profile;
}

bool DeviceProfile::has_cpu_feature(std::string_view feature) const { return contains(cpu_features, feature); }

bool DeviceProfile::has_extension(std::string_view extension) const { return contains(extensions, extension); }

std::string DeviceProfile::to_json() const {
  // A driver may print anything as its name; bytes that are not UTF-8 are replaced, never an error.
  return dump_json(written(*this, {{"version", 1}}), 2) + "\n";
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
