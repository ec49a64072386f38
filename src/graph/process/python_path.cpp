#include "graph/process/python_path.h"

#include <mutex>
#include <sstream>

#include "core/environment_variable.h"
#include "graph/process/run_child.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/graph/process_engine.h"

namespace xpuruntime {
namespace process {
namespace {

struct Known {
  Mutex mutex = {};
  Interpreter interpreter = {};
};
Known& known() {
  static Known* const one = new Known;  // other threads may still ask when the process ends
  return *one;
}

}  // namespace

Interpreter interpreter() {
  Interpreter found;
  {
    const std::lock_guard lock(known().mutex);
    found = known().interpreter;
  }
  const char* const named = environment_variable("XRT_PYTHON");
  if (named != nullptr && *named != '\0') found.program = named;
  if (found.program.empty()) found.program = "python3";
  return found;
}

std::vector<std::string> python_path() {
  const Interpreter python = interpreter();
  const char* const named = environment_variable("XRT_PYTHON");
  const bool is_named = named != nullptr && *named != '\0';
  std::string joined = is_named ? "" : python.path;
  if (joined.empty()) {
    constexpr std::chrono::seconds limit(10);
    const std::string code = "import sys; open(" + std::to_string(result_file) + ", 'w').write(':'.join(sys.path))";
    joined = run_child({python.program, "-c", code}, limit).result;
  }
  std::vector<std::string> folders;
  std::istringstream parts(joined);
  for (std::string folder; std::getline(parts, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

}  // namespace process

void set_engine_python(const std::string& program, const std::string& path) {
  const std::lock_guard lock(process::known().mutex);
  process::known().interpreter = {program, path};
}

}  // namespace xpuruntime
