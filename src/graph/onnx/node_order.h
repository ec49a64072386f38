#pragma once

#include <string>
#include <vector>

#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// What the subgraphs of one node read of the graphs around them.
using NodeReads = std::vector<std::string>;

/// Puts the nodes behind those whose outputs they or their subgraphs read, otherwise as they stand. A cycle is an
/// error. Returns the names that the graph reads and does not make, each once. `reads` goes along with the nodes.
std::vector<std::string> order_nodes(ModelGraph& graph, std::vector<NodeReads> reads);

}  // namespace xpuruntime::onnx
