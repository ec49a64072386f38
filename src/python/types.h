#pragma once

#include <string>

#include "python/bindings.h"
#include "xpuruntime/core/data_type.h"
#include "xpuruntime/core/device.h"
#include "xpuruntime/core/op.h"

namespace xpuruntime::python {

/// A dtype as Python spells it: a text in any of our spellings, a NumPy dtype or scalar type, a PyTorch dtype.
DataType data_type_from(nb::handle value);

/// A device: our Device, a text ("cuda:0"), or an object that prints as one, such as PyTorch's.
Device device_from(nb::handle value);

/// The short name: "f32".
nb::str to_python(DataType dtype);

/// Every attribute of an op, by name, as Python's own values.
nb::dict attribute_values(const Attributes& attributes);

/// The name of its type, for error texts: "list".
std::string python_type(nb::handle value);
/// The same with its article: "an int".
std::string a_python_type(nb::handle value);
/// As Python prints it; its type where it cannot be printed.
std::string python_repr(nb::handle value);
std::string python_str(nb::handle value);

}  // namespace xpuruntime::python
