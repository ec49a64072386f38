#pragma once

#include <memory>
#include <string>

#include "xpuruntime/graph/engine.h"

namespace xpuruntime::python {

/// An engine that is written in Python and runs in this process, once a process of its own has shown that it can
/// compile the model in time. `code` is the place of its class: "module:Class".
std::shared_ptr<const Engine> make_in_process_engine(std::string name, std::string code);

}  // namespace xpuruntime::python
