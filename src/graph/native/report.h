#pragma once

#include <span>
#include <vector>

#include "graph/program/program.h"
#include "xpuruntime/graph/model.h"
#include "xpuruntime/graph/session.h"

// What is said of a program.

namespace xpuruntime::native {

/// What became of each node; `decisions` are those of the program's steps.
std::vector<SessionStep> steps_of(const Model& model, const Program& program, const std::vector<Decision>& decisions);

/// What each call takes, in the program's order; `seconds` are those of its steps.
SessionProfile profile_of(const std::vector<SessionStep>& steps, const Program& program,
                          std::span<const double> seconds);

/// 0 of none.
double median_of(std::vector<double> numbers);

}  // namespace xpuruntime::native
