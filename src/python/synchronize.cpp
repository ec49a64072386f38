#include "python/bindings.h"
#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

/// Waits for the whole device: calls on arrays of other packages went to these packages' streams.
void synchronize(nb::handle name) {
  const Device device = device_from(name);
  if (device.type != DeviceType::nvidia) {
    fail(ErrorCode::invalid_argument, "synchronize",
         to_string(device) + " is no NVIDIA GPU; pass a device such as \"cuda:0\"");
  }
  const WithoutGil released;
  const Status status = Runtime::global().devices().driver(device).synchronize(device.index, {});
  if (!status.ok()) fail(status.code(), "synchronize", status.message());
}

}  // namespace

void bind_synchronize(nb::module_& module) {
  module.def("synchronize", &synchronize, nb::arg("device").none() = "cuda:0",
             nb::sig("def synchronize(device: object = 'cuda:0') -> None"));
}

}  // namespace xpuruntime::python
