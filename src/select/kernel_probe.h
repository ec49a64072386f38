#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/registry/kernel_dtype.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// A usual forward problem of an op whose inputs have these dtypes, the last one standing for all further ones. Inputs
/// that are indices keep their integers. Nothing where the op's rule takes none of the usual shapes.
std::optional<Problem> usual_problem(OpId op, std::span<const DataType> dtypes, Device device = {});

/// Finds out which dtypes the kernels of a device take, by asking them about usual problems, once per generation of the
/// registry.
class KernelProbe {
 public:
  KernelProbe(const KernelRegistry& registry, Device device) : registry_(registry), device_(device) {}

  /// mixed: FP32 with FP16 or with BF16. Never asked for auto_select.
  bool takes(OpId op, KernelDtype dtype) const;

 private:
  struct Answer {
    std::uint32_t generation = 0;
    bool taken = false;
  };

  bool ask(OpId op, KernelDtype dtype) const;
  bool ask(OpId op, std::span<const DataType> dtypes) const;

  const KernelRegistry& registry_;
  const Device device_;
  mutable Mutex mutex_;
  mutable std::map<std::pair<OpId, KernelDtype>, Answer> answers_;
};

}  // namespace xpuruntime
