#include "xpuruntime/cache/op_dispatcher.h"

#include <string>
#include <string_view>

#include "xpuruntime/core/error.h"

namespace xpuruntime::detail {
namespace {

void check_type(DeviceType type, std::string_view function) {
  if (is_device_type(type)) return;
  fail(ErrorCode::invalid_argument, function,
       std::to_string(static_cast<unsigned>(type)) +
           " is not a device type; pass one of the enum's or a registered one");
}

}  // namespace

void fail_lookup(DeviceType type) {
  check_type(type, "OpDispatcher::lookup");
  fail(ErrorCode::not_supported, "OpDispatcher::lookup",
       "no function is registered for device type '" + std::string(to_string(type)) +
           "'; register one with register_device or use a device of another type");
}

void fail_registration(DeviceType type) {
  check_type(type, "OpDispatcher::register_device");
  fail(ErrorCode::invalid_argument, "OpDispatcher::register_device",
       "the function is null; pass the function that serves this device type");
}

}  // namespace xpuruntime::detail
