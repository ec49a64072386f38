#pragma once

#include <string>

#include "cli/operands.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::cli {

/// How far a result is from the float64 reference.
struct Check {
  std::string skipped = {};  // why nothing was compared; the rest has no meaning then
  double max_abs_error = 0;
  double max_rel_error = 0;  // of the largest magnitude in the reference
  double tolerance = 0;      // for max_rel_error
  bool within = true;
};

/// Runs the CPU's `reference` kernel on copies of the inputs in float64 and compares its results with the outputs.
/// `decision` says how they were computed.
Check check_against_reference(Runtime& runtime, const Problem& problem, const Decision& decision,
                              const Operands& operands);

/// Products, roughly, that the reference goes through one by one: a large number is a long wait.
double reference_work(const Problem& problem);

/// The largest relative error that rounding explains.
double tolerance_of(const Problem& problem, const Decision& decision, const TensorSpec& output);

}  // namespace xpuruntime::cli
