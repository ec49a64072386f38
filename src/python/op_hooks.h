#pragma once

#include "python/signatures.h"

namespace xpuruntime::python {

/// Gives a signature the functions that read its parameters which stand for something else than an attribute.
void add_hooks(Signature& signature);

}  // namespace xpuruntime::python
