#include "backends/opencl/cl_loader.h"

#include <dlfcn.h>

namespace xpuruntime::opencl {

std::string load_opencl(const char* file) {
  // Never closed: drivers leave threads behind.
  void* library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* why = dlerror();
    return "the OpenCL loader could not be opened (" + std::string(why ? why : file) +
           "): install ocl-icd-libopencl1, or the vendor's OpenCL driver";
  }
  const char* missing = nullptr;
  const auto find = [&](auto& function, const char* name) {
    auto found = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
    if (found == nullptr) missing = name;
    function = found;
  };
#define XRT_CL(name) find(name, #name);
#include "backends/opencl/cl_functions.inc"
#undef XRT_CL
  if (missing == nullptr) return {};
  return std::string(file) + " has no " + missing +
         ": install a loader of OpenCL 1.2 or later, such as ocl-icd-libopencl1";
}

}  // namespace xpuruntime::opencl
