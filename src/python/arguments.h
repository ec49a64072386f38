#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/bindings.h"
#include "xpuruntime/core/dims.h"
#include "xpuruntime/core/op.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::python {

// Arguments of public functions come as they are, so that a wrong one gets an error that says what to pass. `function`
// and `name` stand in its text.
std::string text_from(nb::handle value, const char* function, const char* name);
/// A text or an os.PathLike.
std::string path_from(nb::handle value, const char* function, const char* name = "path");
std::int64_t integer_from(nb::handle value, const char* function, const char* name);
std::uint64_t count_from(nb::handle value, const char* function, const char* name);
/// One text, or a sequence of them.
std::vector<std::string> texts_from(nb::handle value, const char* function, const char* name);
/// One integer, or a sequence of them.
std::vector<std::int64_t> integers_from(nb::handle value, const char* function, const char* name);
/// A rule's priority: 32 bits.
int priority_from(nb::handle value, const char* function);
double real_from(nb::handle value, const char* function, const char* name);
bool boolean_from(nb::handle value, const char* function, const char* name);
/// An op by any of its names.
OpId op_from(nb::handle value, const char* function);
/// A Problem, or its text.
Problem problem_from(nb::handle value, const char* function);
/// Not callable: an error.
void check_callable(nb::handle value, const char* function, const char* name);

/// What is no UTF-8 in it, such as a driver's message, becomes a sign for that.
nb::str to_python(std::string_view text);
nb::tuple to_python(const Dims& dims);

}  // namespace xpuruntime::python
