#pragma once

#include <string>
#include <vector>

namespace xpuruntime::process {

struct Interpreter {
  std::string program = {};
  std::string path = {};  // for PYTHONPATH, before what is there
};

/// The Python that engines run in: that of XRT_PYTHON, else the one that set_engine_python named, else python3.
Interpreter interpreter();

/// The folders in which it looks for packages; nothing where it cannot be started.
std::vector<std::string> python_path();

}  // namespace xpuruntime::process
