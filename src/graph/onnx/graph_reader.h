#pragma once

#include "graph/onnx/tensor_reader.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// A GraphProto, with its nodes in order. Whether all names are made is checked afterwards: see names.h.
ModelGraph read_graph(const WireField& message, TensorReader& tensors);

}  // namespace xpuruntime::onnx
