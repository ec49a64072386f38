#pragma once

#include <string>

#include "python/bindings.h"
#include "xpuruntime/select/policy.h"

namespace xpuruntime::python {

// JSON by Python's own module. What it cannot write is an ArgumentTypeError that names `function`.
nb::object from_json_text(const std::string& json);
std::string to_json_text(nb::handle value, const char* function);

/// What a policy says of one op, in the shapes of the file: a kernel, a list of them, {"kernel": ..., "mode": ...}.
KernelPreference preference_from(nb::handle value, const std::string& op);
nb::object to_python(const KernelPreference& preference);

/// Sets a field by the name that it has in files; None unsets it. False where there is no such field.
bool set_field(KernelPolicy& policy, const std::string& name, nb::handle value);
/// Puts ops and fields into a policy that says nothing yet. An op that stands there under two names is an error.
void fill(KernelPolicy& policy, const nb::dict& values);

/// A KernelPolicy, the path of a file, or a dict: of ops and fields, or as a file has it.
KernelPolicy policy_from(nb::handle value, const char* function);

}  // namespace xpuruntime::python
