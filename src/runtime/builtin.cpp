#include <string>

#include "backends/cpu/backend.h"
#include "backends/cpu/base/thread_pool.h"
#include "device/absent_driver.h"
#include "registry/shared_object.h"
#include "runtime/runtime_parts.h"

namespace xpuruntime {
namespace {

void add_module(KernelRegistry& registry, DeviceType type, const char* file, bool wanted) {
  std::string why = "it was turned off in RuntimeOptions";
  if (wanted) {
    try {
      registry.load_plugin(parts_folder() + "/" + file, KernelOrigin::built_in);
      return;
    } catch (const Error& error) {
      why = std::string("its backend could not be opened: ") + error.what();
    }
  }
  registry.devices().add_driver(make_absent_driver(type, why));
}

}  // namespace

// This and builtin_catalogue.cpp alone name backends.
void add_builtin_backends(KernelRegistry& registry, const RuntimeOptions& options) {
  registry.add_backend(make_cpu_backend(), KernelOrigin::built_in);
  add_module(registry, DeviceType::nvidia, "libxpuruntime_cuda.so", options.cuda);
  add_module(registry, DeviceType::opencl, "libxpuruntime_opencl.so", options.opencl);
}

int threads_of_the_cpu() { return cpu::default_threads(); }

}  // namespace xpuruntime
