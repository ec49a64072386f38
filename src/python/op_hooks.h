#pragma once

#include "python/signatures.h"

namespace xpuruntime::python {

/// Gives the signature of a built-in op the functions that read its parameters that are not attributes.
void add_hooks(Signature& signature);

}  // namespace xpuruntime::python
