#include "xpuruntime/device/driver.h"

namespace xpuruntime {

void* DeviceDriver::allocate_ordered(int index, std::size_t bytes, Stream) { return allocate(index, bytes); }
void DeviceDriver::deallocate_ordered(int index, void* memory, Stream) noexcept { deallocate(index, memory); }
std::uint64_t DeviceDriver::stream_id(int, void*) { return 0; }
bool DeviceDriver::capturing(int, Stream) { return false; }
Status DeviceDriver::queue_wait(int index, Stream, Event event) { return wait_event(index, event); }
std::unique_ptr<ValueFault> DeviceDriver::make_value_fault(int, std::string) { return nullptr; }

}  // namespace xpuruntime
