#pragma once

#include "python/bindings.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime::python {

/// Every attribute of the op, by name, as Python's own values.
nb::dict attribute_values(const Attributes& attributes);

}  // namespace xpuruntime::python
