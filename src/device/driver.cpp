#include "xpuruntime/device/driver.h"

namespace xpuruntime {
namespace {

std::string no_graphs(DeviceType type) {
  return "devices of type " + std::string(to_string(type)) + " record no graphs; record on an NVIDIA GPU";
}

}  // namespace

void* DeviceDriver::allocate_ordered(int index, std::size_t bytes, Stream) { return allocate(index, bytes); }
void DeviceDriver::deallocate_ordered(int index, void* memory, Stream) noexcept { deallocate(index, memory); }

Status DeviceDriver::write_value(int index, void* memory, const void* value, std::size_t bytes, Stream stream) {
  return copy_from_host(index, memory, 0, value, bytes, stream);
}
std::uint64_t DeviceDriver::stream_id(int, void*) { return 0; }
std::uint64_t DeviceDriver::capture_id(int, Stream) { return 0; }
Status DeviceDriver::flush_caches(int, void*, std::size_t, Stream) {
  return Status(ErrorCode::not_supported, "this device's caches cannot be flushed; it is timed on warm ones");
}
Status DeviceDriver::queue_wait(int index, Stream, Event event) { return wait_event(index, event); }
std::unique_ptr<ValueFault> DeviceDriver::make_value_fault(int, std::string) { return nullptr; }

void DeviceDriver::keep_with_graph(int, Stream, std::shared_ptr<void>) {
  fail(ErrorCode::not_supported, "keep_with_graph", no_graphs(type()));
}
void DeviceDriver::begin_capture(int, Stream) { fail(ErrorCode::not_supported, "begin_capture", no_graphs(type())); }
DeviceGraph DeviceDriver::end_capture(int, Stream) { fail(ErrorCode::not_supported, "end_capture", no_graphs(type())); }
Status DeviceDriver::launch_graph(int, DeviceGraph, Stream) {
  return Status(ErrorCode::not_supported, no_graphs(type()));
}
void DeviceDriver::destroy_graph(int, DeviceGraph) noexcept {}

}  // namespace xpuruntime
