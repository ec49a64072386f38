#include "xpuruntime/registry/kernel_capability.h"

#include <cmath>
#include <string>

#include "xpuruntime/core/error.h"

namespace xpuruntime {
namespace {

void check_factor(const char* name, float factor) {
  if (std::isfinite(factor) && factor > 0) return;
  fail(ErrorCode::invalid_argument, "KernelCapability::check",
       std::string(name) + " is " + std::to_string(factor) + "; give a finite number above 0, 1 for that of FP32");
}

}  // namespace

void KernelCapability::check() const {
  to_string(dtype);  // a value outside the enum is an error here
  if (dtype == KernelDtype::auto_select) {
    fail(ErrorCode::invalid_argument, "KernelCapability::check",
         "a capability cannot have the dtype auto; give the dtype that the kernel computes in");
  }
  check_factor("performance_factor", performance_factor);
  check_factor("memory_efficiency", memory_efficiency);
}

}  // namespace xpuruntime
