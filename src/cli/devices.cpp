#include <algorithm>

#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "core/printable.h"
#include "device/absent_driver.h"

namespace xpuruntime::cli {
namespace {

struct AbsentType {
  DeviceType type = DeviceType::cpu;
  std::string why = {};
};

std::vector<AbsentType> absent_types(const DeviceManager& devices) {
  std::vector<AbsentType> absent;
  for (const DeviceType type : device_types()) {
    if (std::string why = devices.why_absent(type); !why.empty()) absent.push_back({type, std::move(why)});
  }
  return absent;
}

/// Of types that have other devices: the reasons of those that have none name it.
std::vector<AbsentType> left_out(const DeviceManager& devices) {
  std::vector<AbsentType> all;
  for (const DeviceType type : device_types()) {
    if (!devices.why_absent(type).empty()) continue;
    const auto* driver = dynamic_cast<const TryingDriver*>(&devices.driver(Device{type, 0}));
    if (driver == nullptr) continue;
    for (std::string& why : driver->left_out()) all.push_back({type, std::move(why)});
  }
  return all;
}

std::string memory_text(std::uint64_t bytes) {
  return bytes == 0 ? "-" : figure("%.1f GiB", static_cast<double>(bytes) / (1024.0 * 1024.0 * 1024.0));
}

std::string flags_text(const DeviceProfile& profile) {
  const std::pair<bool, const char*> flags[] = {{profile.fp64, "fp64"},
                                                {profile.fp16, "fp16"},
                                                {profile.bf16, "bf16"},
                                                {profile.fp8, "fp8"},
                                                {profile.int8, "int8"},
                                                {profile.tensor_cores, "tensor_cores"},
                                                {profile.integrated, "integrated"}};
  std::string text;
  for (const auto& [set, name] : flags) {
    if (set) text += (text.empty() ? "" : " ") + std::string(name);
  }
  return text.empty() ? "-" : text;
}

std::string as_text(const DeviceManager& devices, const Painter& paint) {
  Table table({"device", "name", "vendor", "units", "memory", "flags"});
  for (const Device device : devices.devices()) {
    const DeviceProfile& profile = devices.profile(device);
    table.add({to_string(device), profile.name, profile.vendor, std::to_string(profile.compute_units),
               memory_text(profile.global_memory_bytes), flags_text(profile)});
  }
  std::string text = table.to_text(paint);
  for (const Device device : devices.devices()) {
    const DeviceProfile& profile = devices.profile(device);
    if (device.type != DeviceType::nvidia) continue;
    std::string libraries = to_string(device) + ": driver " + profile.driver_version;
    for (const auto& [name, version] : profile.library_versions) libraries.append(", " + name + " " + version);
    text += paint(Colour::dim, libraries) + "\n";
  }
  for (const auto& [type, reason] : left_out(devices)) {
    text += paint(Colour::dim, "left out of " + std::string(to_string(type)) + ": " + printable(reason)) + "\n";
  }
  for (const AbsentType& absent : absent_types(devices)) {
    text += paint(Colour::dim, "no " + std::string(to_string(absent.type)) + ": " + absent.why) + "\n";
  }
  return text;
}

std::string as_json(const DeviceManager& devices) {
  Json document = {{"version", 1}, {"devices", Json::array()}, {"absent", Json::array()}};
  for (const Device device : devices.devices()) {
    document["devices"].push_back(
        {{"device", to_string(device)}, {"profile", parse_known_json(devices.profile(device).to_json())}});
  }
  for (const AbsentType& absent : absent_types(devices)) {
    document["absent"].push_back({{"type", to_string(absent.type)}, {"why", absent.why}});
  }
  for (const auto& [type, reason] : left_out(devices)) {
    document["left_out"].push_back({{"type", to_string(type)}, {"why", reason}});
  }
  return dump_json(document, 2) + "\n";
}

std::string with_newline(std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace

void add_devices(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "devices", "List the devices here, and why others are not", "xrt devices");
  command.callback([&context] {
    context.command = [&context]() -> Answer {
      const DeviceManager& devices = context.runtime().devices();
      return {context.json ? as_json(devices) : as_text(devices, context.paint)};
    };
  });
}

void add_profile(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "profile", "Print a device's profile as a JSON file for explain --profile",
                  "xrt profile opencl:0 > laptop.json");
  // The parser must not outlive what it fills in, so the value is shared with the command.
  const auto name = std::make_shared<std::string>();
  command.add_option("device", *name, "The device (default: that of --device, or cpu:0)")->type_name("DEVICE");
  command.callback([&context, name] {
    context.command = [&context, name]() -> Answer {
      const Device device = name->empty() ? context.given_device().value_or(Device{}) : parse_device(*name);
      return {with_newline(context.runtime().devices().profile(device).to_json())};
    };
  });
}

}  // namespace xpuruntime::cli
