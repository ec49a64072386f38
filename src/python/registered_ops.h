#pragma once

#include "python/signatures.h"

namespace xpuruntime::python {

/// How Python calls an op that it registered itself; null for one that a plugin did. With the GIL.
const Signature* registered_signature(OpId op);

/// A function that calls the op. The signature lives as long as the process.
nb::object function_of(const Signature& signature);

}  // namespace xpuruntime::python
