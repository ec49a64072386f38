#pragma once

#include <memory>

#include "backends/opencl/device_context.h"
#include "xpuruntime/device/source_function.h"

namespace xpuruntime::opencl {

std::shared_ptr<SourceFunction> make_source_function(DeviceContext& device, const FunctionSource& source, int index);

}  // namespace xpuruntime::opencl
