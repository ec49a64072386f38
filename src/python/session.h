#pragma once

#include <vector>

#include "python/bindings.h"
#include "xpuruntime/graph/session.h"

namespace xpuruntime::python {

/// Tensors of arrays, in the order of the session's inputs.
std::vector<Tensor> inputs_of(const Session& session, nb::list arrays);
/// Tensors of lists of arrays, each list in the order of the session's inputs.
std::vector<std::vector<Tensor>> calibration_from(const Session& session, nb::list calibration);

/// Engines that come with the package need no process for a run in Python.
void put_engines_in_process();

}  // namespace xpuruntime::python
