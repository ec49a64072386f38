#pragma once

#include <functional>
#include <memory>
#include <string>

#include "graph/onnx/tensor_reader.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// The attribute of the function around a node that an AttributeProto stands for; empty: it is a value of its own.
std::string_view referred_attribute(const WireField& message);

using ReadSubgraph = std::function<std::shared_ptr<const ModelGraph>(const WireField&)>;

struct NamedAttribute {
  std::string name = {};
  ModelAttribute value = {};
};

/// An AttributeProto of the node that `node` describes.
NamedAttribute read_attribute(const WireField& message, const std::string& node, TensorReader& tensors,
                              const ReadSubgraph& read_subgraph);

}  // namespace xpuruntime::onnx
