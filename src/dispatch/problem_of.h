#pragma once

#include <optional>
#include <span>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/dispatch/call.h"
#include "xpuruntime/select/decision.h"

namespace xpuruntime {

/// The problem a call poses under some limits. A call that cannot be right is an error that shows what is wrong with
/// it.
Problem problem_of(const Call& call, const Limits& limits);
/// The same whatever the call's outputs: with those that follow from its inputs.
Problem problem_of_inputs(const Call& call, const Limits& limits);

/// Fails on a precision that nothing can be computed in.
void check_precision(OpId op, std::optional<DataType> precision);

/// Whether an output shares its memory with an input, so that a run that failed half way may have spoiled the input.
/// One that is cast afterwards was not written yet.
bool writes_over_inputs(const Call& call, std::span<const CastStep> casts);

}  // namespace xpuruntime
