#pragma once

#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// Fails if a node of ONNX's own domain has inputs, outputs or attributes that its operator has in no opset. Engines
/// would leave them out, and compute something else than the model says. Operators that ONNX does not have are not
/// looked at.
void check_operator(const ModelNode& node);

}  // namespace xpuruntime::onnx
