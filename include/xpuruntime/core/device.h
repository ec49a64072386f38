#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace xpuruntime {

/// The kinds of device. These have a number from the start; types that plugins bring get the numbers after them.
enum class DeviceType : std::uint8_t { cpu, nvidia, opencl, npu, kunlun, hygon, moore };
/// How many there may be in a process.
inline constexpr std::size_t max_device_types = 16;

/// The type of this name, which is new or known: `register_device_type("tpu")`. Files and texts hold the name; the
/// number is valid in this process only. A name is a letter and then letters, digits and underscores, in lower
/// case.
DeviceType register_device_type(std::string_view name);
/// All types that there are, in the order of their numbers.
std::vector<DeviceType> device_types();
/// Whether the number is that of a type.
bool is_device_type(DeviceType type);

/// "cpu", "cuda" (for nvidia), "opencl" ...
std::string_view to_string(DeviceType type);
/// Takes `cuda` and `nvidia` alike, in any case. An unknown name is an error that lists the near ones.
DeviceType parse_device_type(std::string_view name);

/// One device of this machine: `cuda:0`.
struct Device {
  DeviceType type = DeviceType::cpu;
  std::uint8_t index = 0;

  auto operator<=>(const Device&) const = default;
};

std::string to_string(Device device);
/// Reads `cuda:1`; `cuda` alone is `cuda:0`.
Device parse_device(std::string_view text);

}  // namespace xpuruntime

template <>
struct std::hash<xpuruntime::Device> {
  std::size_t operator()(xpuruntime::Device device) const noexcept {
    return static_cast<std::size_t>(device.type) << 8 | device.index;
  }
};
