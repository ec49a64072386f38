#include "xpuruntime/device/profile.h"

#include <nanobind/operators.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core/json_text.h"
#include "device/profile_text.h"
#include "python/arguments.h"
#include "python/gil.h"
#include "python/policy_values.h"

namespace xpuruntime::python {
namespace {

/// There is no text that an error could point into, only names and values.
DeviceProfile from_fields(const nb::kwargs& fields) {
  constexpr const char* function = "DeviceProfile";
  const Json known = parse_known_json(DeviceProfile().to_json());
  for (const auto& [name, value] : fields) {
    const std::string field = text_from(name, function, "a field");
    if (known.contains(field)) continue;
    std::string all;
    for (const auto& each : known.items()) all += (all.empty() ? "" : ", ") + each.key();
    fail(ErrorCode::invalid_argument, function, "unknown field '" + printable(field) + "'; use one of: " + all);
  }
  return parse_profile(to_json_text(fields, function), {function, "", "profile"});
}

void save_profile(const DeviceProfile& profile, nb::handle path) {
  const std::string file = path_from(path, "DeviceProfile.save");
  const JsonSource source{"DeviceProfile::save", "profile file '" + file + "': ", "profile"};
  const WithoutGil release;
  write_file_atomically(file, profile.to_json(), source);
}

DeviceProfile load_profile(nb::handle path) {
  const std::string file = path_from(path, "DeviceProfile.load");
  const WithoutGil release;
  return DeviceProfile::load(file);
}

void bind_fields(nb::class_<DeviceProfile>& profile) {
  profile
      .def_prop_ro(
          "type", [](const DeviceProfile& self) { return to_python(to_string(self.type)); },
          "The device's kind: cpu, cuda, opencl.")
      .def_ro("vendor", &DeviceProfile::vendor, "In lower case: \"intel\", \"nvidia\", \"arm\".")
      .def_ro("name", &DeviceProfile::name, "As the driver prints it.")
      .def_ro("driver_version", &DeviceProfile::driver_version)
      .def_ro("library_versions", &DeviceProfile::library_versions)
      .def_ro("compute_capability_major", &DeviceProfile::compute_capability_major, "NVIDIA only.")
      .def_ro("compute_capability_minor", &DeviceProfile::compute_capability_minor)
      .def_ro("compute_units", &DeviceProfile::compute_units, "Cores, multiprocessors.")
      .def_ro("integrated", &DeviceProfile::integrated, "Whether it shares memory with the host.")
      .def_ro("global_memory_bytes", &DeviceProfile::global_memory_bytes)
      .def_ro("local_memory_bytes", &DeviceProfile::local_memory_bytes, "Per work-group or block.")
      .def_ro("l1_bytes", &DeviceProfile::l1_bytes, "Of data, per core.")
      .def_ro("l2_bytes", &DeviceProfile::l2_bytes)
      .def_ro("l3_bytes", &DeviceProfile::l3_bytes)
      .def_ro("cache_line_bytes", &DeviceProfile::cache_line_bytes)
      .def_ro("max_work_group_size", &DeviceProfile::max_work_group_size)
      .def_ro("max_work_item_sizes", &DeviceProfile::max_work_item_sizes)
      .def_ro("sub_group_size", &DeviceProfile::sub_group_size, "Warp, wavefront; 0: unknown.")
      .def_ro("fp16", &DeviceProfile::fp16, "Whether it computes in this type, not only stores it.")
      .def_ro("bf16", &DeviceProfile::bf16)
      .def_ro("fp64", &DeviceProfile::fp64)
      .def_ro("int8", &DeviceProfile::int8)
      .def_ro("fp8", &DeviceProfile::fp8)
      .def_ro("tensor_cores", &DeviceProfile::tensor_cores, "Matrix units of any vendor.")
      .def_ro("cpu_features", &DeviceProfile::cpu_features)
      .def_ro("extensions", &DeviceProfile::extensions);
}

}  // namespace

void bind_profile(nb::module_& module) {
  nb::class_<DeviceProfile> profile(module, "DeviceProfile",
                                    "All that rules and kernels may ask of a device. A device that is not here is a "
                                    "profile somebody wrote.");
  profile
      .def(
          "__init__",
          [](DeviceProfile* self, const nb::kwargs& fields) { new (self) DeviceProfile(from_fields(fields)); },
          nb::sig("def __init__(self, **fields: object) -> None"), "Any of the fields by name; the others keep theirs.")
      .def(
          "has_cpu_feature",
          [](const DeviceProfile& self, nb::handle feature) {
            return self.has_cpu_feature(text_from(feature, "has_cpu_feature", "feature"));
          },
          nb::arg("feature").none(), nb::sig("def has_cpu_feature(self, feature: str) -> bool"),
          "Whether the processor has it: \"avx2\", \"neon\".")
      .def(
          "has_extension",
          [](const DeviceProfile& self, nb::handle extension) {
            return self.has_extension(text_from(extension, "has_extension", "extension"));
          },
          nb::arg("extension").none(), nb::sig("def has_extension(self, extension: str) -> bool"),
          "Whether the driver has it: \"cl_khr_fp16\".")
      .def("to_json", &DeviceProfile::to_json, "Every field, as docs/interfaces.md lists them.")
      .def_static(
          "from_json", [](nb::handle json) { return DeviceProfile::from_json(text_from(json, "from_json", "json")); },
          nb::arg("json").none(), nb::sig("def from_json(json: str) -> DeviceProfile"))
      .def_static("load", load_profile, nb::arg("path").none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> DeviceProfile"))
      .def("save", save_profile, nb::arg("path").none(),
           nb::sig("def save(self, path: str | os.PathLike[str]) -> None"))
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const DeviceProfile& self) { return nb::hash(to_python(self.name)); })
      .def("__getstate__", &DeviceProfile::to_json)
      .def("__setstate__", [](DeviceProfile& self,
                              const std::string& json) { new (&self) DeviceProfile(DeviceProfile::from_json(json)); })
      .def("__repr__", [](const DeviceProfile& self) {
        return printable("DeviceProfile(type='" + std::string(to_string(self.type)) + "', name='" + self.name + "')");
      });
  bind_fields(profile);
}

}  // namespace xpuruntime::python
