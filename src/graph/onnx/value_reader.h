#pragma once

#include "graph/onnx/wire.h"
#include "xpuruntime/graph/model.h"

namespace xpuruntime::onnx {

/// A ValueInfoProto: what the file says of a tensor. `subject` names it in errors: "graph input".
ModelValue read_value(const WireField& message, std::string_view subject);

}  // namespace xpuruntime::onnx
