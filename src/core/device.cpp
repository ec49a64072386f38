#include "xpuruntime/core/device.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <vector>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

constexpr std::string_view names[device_type_count] = {"cpu", "cuda", "opencl", "npu", "kunlun", "hygon", "moore"};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
  });
}

}  // namespace

std::string_view to_string(DeviceType type) {
  const auto index = static_cast<std::size_t>(type);
  if (index >= device_type_count) {
    fail(ErrorCode::invalid_argument, "to_string", "a DeviceType outside its range; pass one of the enum's values");
  }
  return names[index];
}

DeviceType parse_device_type(std::string_view name) {
  for (std::size_t i = 0; i < device_type_count; ++i) {
    if (equal_ignoring_case(name, names[i])) return static_cast<DeviceType>(i);
  }
  if (equal_ignoring_case(name, "nvidia")) return DeviceType::nvidia;
  fail_unknown("parse_device_type", "device type", name, names);
}

std::string to_string(Device device) {
  return std::string(to_string(device.type)) + ":" + std::to_string(device.index);
}

Device parse_device(std::string_view text) {
  const std::size_t colon = text.find(':');
  const DeviceType type = parse_device_type(text.substr(0, colon));
  if (colon == std::string_view::npos) return {type, 0};
  const std::string_view digits = text.substr(colon + 1);
  std::uint8_t index = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), index);
  if (error != std::errc{} || end != digits.data() + digits.size()) {
    fail(ErrorCode::invalid_argument, "parse_device",
         "'" + std::string(text.substr(0, 64)) + "' has no index from 0 to 255; write it like cuda:0");
  }
  return {type, index};
}

}  // namespace xpuruntime
