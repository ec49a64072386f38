#include "xpuruntime/core/device.h"

#include <array>
#include <atomic>
#include <charconv>
#include <mutex>
#include <optional>
#include <span>

#include "core/names.h"
#include "core/printable.h"
#include "xpuruntime/core/error.h"
#include "xpuruntime/core/mutex.h"

namespace xpuruntime {
namespace {

// Readers take no lock: a name is written once, before the count that makes it visible.
constinit std::array<std::string_view, max_device_types> names = {"cpu",    "cuda",  "opencl", "npu",
                                                                  "kunlun", "hygon", "moore"};
constinit std::atomic<std::size_t> count = 7;
Mutex registration;

std::span<const std::string_view> known_names() {
  return std::span(names).first(count.load(std::memory_order_acquire));
}

std::optional<DeviceType> find_device_type(std::string_view name) {
  if (equal_ignoring_case(name, "nvidia")) return DeviceType::nvidia;
  const auto known = known_names();
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (equal_ignoring_case(name, known[i])) return static_cast<DeviceType>(i);
  }
  return {};
}

bool is_name(std::string_view name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789_";
  const bool starts_well = !name.empty() && name[0] >= 'a' && name[0] <= 'z';
  return starts_well && name.size() <= 32 && name.find_first_not_of(allowed) == name.npos;
}

}  // namespace

DeviceType register_device_type(std::string_view name) {
  const std::lock_guard lock(registration);
  if (const auto known = find_device_type(name)) return *known;
  if (!is_name(name)) {
    fail(ErrorCode::invalid_argument, "register_device_type",
         "'" + shown(name) +
             "' is not a name; use a letter, then letters, digits and underscores, in lower case, at most 32");
  }
  const std::size_t number = count.load(std::memory_order_relaxed);
  if (number == max_device_types) {
    fail(ErrorCode::not_supported, "register_device_type",
         "there are " + std::to_string(number) + " device types already; load fewer plugins");
  }
  names[number] = *new std::string(name);  // for as long as the process lives
  count.store(number + 1, std::memory_order_release);
  return static_cast<DeviceType>(number);
}

std::vector<DeviceType> device_types() {
  std::vector<DeviceType> types(known_names().size());
  for (std::size_t i = 0; i < types.size(); ++i) types[i] = static_cast<DeviceType>(i);
  return types;
}

bool is_device_type(DeviceType type) { return static_cast<std::size_t>(type) < known_names().size(); }

std::string_view to_string(DeviceType type) {
  if (is_device_type(type)) return names[static_cast<std::size_t>(type)];
  fail(ErrorCode::invalid_argument, "to_string",
       std::to_string(static_cast<unsigned>(type)) +
           " is not a device type; pass one of the enum's or a registered one");
}

DeviceType parse_device_type(std::string_view name) {
  if (const auto found = find_device_type(name)) return *found;
  fail_unknown("parse_device_type", "device type", name, known_names());
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
