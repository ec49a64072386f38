#pragma once

#include <memory>
#include <string>

#include "xpuruntime/graph/engine.h"

namespace xpuruntime {

/// An engine that is written in Python, each of its models in a process of its own. `code` is the place of its class:
/// "module:Class". docs/engines.md.
std::shared_ptr<const Engine> make_process_engine(std::string name, std::string code);

/// The Python of these processes, for the program that knows it: `program` instead of python3 on PATH, and what its
/// PYTHONPATH begins with. The variable XRT_PYTHON comes before it.
void set_engine_python(const std::string& program, const std::string& path);

}  // namespace xpuruntime
