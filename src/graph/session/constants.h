#pragma once

#include <functional>
#include <string>

#include "xpuruntime/graph/model.h"

namespace xpuruntime {

/// Also those of branches and bodies.
inline void for_each_constant(const ModelGraph& graph,
                              const std::function<void(const std::string&, const Tensor&)>& visit) {
  for (const auto& [name, tensor] : graph.constants) visit(name, tensor);
  for (const ModelNode& node : graph.nodes) {
    for (const auto& [name, value] : node.attributes) {
      if (const auto* tensor = std::get_if<Tensor>(&value)) visit(name, *tensor);
      if (const auto* body = std::get_if<std::shared_ptr<const ModelGraph>>(&value)) for_each_constant(**body, visit);
    }
  }
}

}  // namespace xpuruntime
