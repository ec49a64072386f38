#pragma once

#include "graph/native/lowering.h"

namespace xpuruntime::native {

using Names = std::vector<std::string>;

/// One of ONNX's functions for gates, with its numbers.
struct Function {
  std::string name;
  double alpha, beta;
  double clip;  // its argument stays this close to 0; 0: anywhere
};

using Functions = std::vector<Function>;

/// Of each gate of each direction of a recurrent node; the defaults are those of one direction.
Functions functions_of(const NodeCall& call, const Names& defaults, std::int64_t directions);
/// What a function makes of a slot.
int applied(const NodeCall& call, const Function& function, int x);

}  // namespace xpuruntime::native
