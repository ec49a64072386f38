#pragma once

#include "graph/passes/rewriter.h"

namespace xpuruntime::native {

/// The same product as a call of linear, of the same outputs: a matmul by a matrix whose `c`, if any, is a bias, or a
/// linear as it is. Nothing: it is neither.
std::optional<Step> as_linear(Rewriter& program, std::size_t step);

}  // namespace xpuruntime::native
