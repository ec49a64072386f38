#pragma once

#include "xpuruntime/core/error.h"
#include "xpuruntime/core/problem.h"

namespace xpuruntime::cpu {

/// The dim of the scores that counts classes: the second, or the only one.
inline std::size_t class_dim(const TensorSpec& scores) { return scores.shape.size() == 1 ? 0 : 1; }

/// A tensor of one value a target, in the rank of the scores: with a class dim of extent 1.
TensorSpec with_class_dim(const TensorSpec& spec, const TensorSpec& scores);

/// An error that names the first target that is neither a class nor `ignore_index`; looks at all on up to `threads`.
Status check_targets(const Tensor& targets, std::int64_t classes, std::int64_t ignore_index, int threads);

}  // namespace xpuruntime::cpu
