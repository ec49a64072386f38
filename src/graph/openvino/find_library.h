#pragma once

#include <string>

namespace xpuruntime::openvino {

/// The file of OpenVINO's C interface: in the Python package openvino, or what the system calls so.
std::string find_library();

}  // namespace xpuruntime::openvino
