#pragma once

#include <span>
#include <string>

namespace xpuruntime::cuda {

/// Opens one of NVIDIA's libraries under the first of these file names that is found: in the process already, where
/// whatever was imported first has brought it; in pip's nvidia packages beside the Python packages that are loaded; on
/// the system's paths. A second copy beside one that PyTorch brings would be of another version. Null: there is none.
void* open_first(std::span<const std::string> files);

}  // namespace xpuruntime::cuda
