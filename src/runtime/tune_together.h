#pragma once

#include <functional>
#include <span>

#include "runtime/measured_choices.h"
#include "xpuruntime/tune/range_result.h"

namespace xpuruntime {

// What Runtime::tune does, for a test that brings a clock of its own.

bool tune_problems(Dispatcher& dispatcher, MeasuredChoices& measured, std::span<const Problem> problems,
                   const TuneOptions& options, const std::function<void(const TuneResult&)>& finished);

TunedTogether tune_together(Dispatcher& dispatcher, MeasuredChoices& measured, std::span<const Problem> problems,
                            std::span<const ProblemRange> ranges, const TuneOptions& options,
                            const std::function<void(const TuneResult&)>& finished);

}  // namespace xpuruntime
