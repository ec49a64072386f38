#pragma once

#include <string>

namespace xpuruntime::opencl {

/// "1.5.3"; empty where CLBlast is not installed. It links the OpenCL loader, so that it is opened after that: no
/// driver that was left out is started by it.
std::string clblast_version();

}  // namespace xpuruntime::opencl
