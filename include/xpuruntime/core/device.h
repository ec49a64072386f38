#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace xpuruntime {

/// The kinds of device. The last ones are slots for vendors whose backends may come as plugins.
enum class DeviceType : std::uint8_t { cpu, nvidia, opencl, npu, kunlun, hygon, moore };
inline constexpr std::size_t device_type_count = 7;

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
