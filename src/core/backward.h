#pragma once

#include <cstddef>
#include <optional>

#include "xpuruntime/core/problem.h"

// Backward problems seen from forward: what their code and their rules are written in terms of.

namespace xpuruntime {

/// The forward call that a backward problem takes the gradient of. Its output has the gradient's dtype and strides.
Problem forward_of(const Problem& backward);

/// Which output of a backward problem is the gradient of this input; nothing where the input has none.
std::optional<std::size_t> gradient_of(const Problem& backward, std::size_t input);

}  // namespace xpuruntime
