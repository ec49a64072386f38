#include <cstdlib>
#include <sstream>

#include "graph/openvino/worker.h"

namespace xpuruntime::openvino {

std::vector<std::string> words_of(const Settings& settings) {
  std::string shapes;
  for (const auto& shape : settings.shapes) {
    for (const std::int64_t extent : shape) shapes += std::to_string(extent) + ",";
    shapes += ";";
  }
  return {settings.device, settings.precision, std::to_string(settings.threads), shapes};
}

Settings settings_of(const char* const* words) {
  Settings settings{words[0], words[1], std::atoi(words[2])};
  std::istringstream shapes(words[3]);
  for (std::string shape; std::getline(shapes, shape, ';');) {
    settings.shapes.emplace_back();
    std::istringstream extents(shape);
    for (std::string extent; std::getline(extents, extent, ',');) settings.shapes.back().push_back(std::stoll(extent));
  }
  return settings;
}

}  // namespace xpuruntime::openvino
