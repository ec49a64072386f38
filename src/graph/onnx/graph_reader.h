#pragma once

#include "graph/onnx/functions.h"
#include "graph/onnx/tensor_reader.h"
#include "graph/onnx/wire.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// A GraphProto, with its nodes in order, and in the place of a call of a function the function's. `opset`: of the
/// model. Whether all names are made is checked afterwards: see names.h.
ModelGraph read_graph(const WireField& message, TensorReader& tensors, const Functions& functions, std::int64_t opset);

}  // namespace xpuruntime::onnx
