#include "graph/openvino/find_library.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <vector>

#include "graph/process/python_path.h"

namespace xpuruntime::openvino {

std::string find_library() {
  namespace fs = std::filesystem;
  constexpr const char* name = "libopenvino_c.so";
  for (const std::string& folder : process::python_path()) {
    std::vector<std::string> found;
    std::error_code none;
    for (fs::directory_iterator entry(folder + "/openvino/libs", none), end; !none && entry != end;
         entry.increment(none)) {
      if (entry->path().filename().string().starts_with(name)) found.push_back(entry->path());
    }
    if (!found.empty()) return *std::max_element(found.begin(), found.end());
  }
  return name;
}

}  // namespace xpuruntime::openvino
