#pragma once

#include <string>

#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// "node 'conv1' (Conv)"; a node without a name is called by what it makes.
std::string node_text(const ModelNode& node);

/// Fails if a name is made twice, also in a subgraph and before it in a graph around it, or is read and not made.
void check_names(const ModelGraph& graph);

}  // namespace xpuruntime::onnx
