#pragma once

#include "tune/operands.h"
#include "xpuruntime/dispatch/call.h"

namespace xpuruntime::cli {

/// The call of a problem on these tensors; good as long as both live.
inline Call call_on(const Problem& problem, const Operands& operands) {
  return {problem.op, operands.input_pointers(), operands.output_pointers(), &problem.attributes, problem.direction};
}

}  // namespace xpuruntime::cli
