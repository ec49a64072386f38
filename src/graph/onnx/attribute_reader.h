#pragma once

#include <functional>
#include <memory>
#include <string>

#include "graph/onnx/tensor_reader.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

using ReadSubgraph = std::function<std::shared_ptr<const ModelGraph>(const WireField&)>;

struct NamedAttribute {
  std::string name = {};
  ModelAttribute value = {};
};

/// An AttributeProto of the node that `node` describes.
NamedAttribute read_attribute(const WireField& message, const std::string& node, TensorReader& tensors,
                              const ReadSubgraph& read_subgraph);

}  // namespace xpuruntime::onnx
