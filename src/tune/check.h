#pragma once

#include <string>
#include <string_view>

#include "tune/operands.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// How far a result is from the float64 reference.
struct Check {
  std::string skipped = {};  // why nothing was compared; the rest has no meaning then
  double max_abs_error = 0;
  double max_rel_error = 0;  // of the largest magnitude in the reference
  double tolerance = 0;      // for max_rel_error
  bool within = true;
};

/// How a result came about, as far as its roundings go.
struct Computation {
  std::string_view kernel = {};
  double casting = 0;  // relative error that casts before and after the kernel explain
};

/// The distance from 1 to the next number; 0 for integers, which are exact.
double epsilon_of(DataType dtype);

/// The largest relative error that rounding explains.
double tolerance_of(const Problem& problem, const Computation& computation, const TensorSpec& output);

/// Products, roughly, that the reference goes through one by one: a large number is a long wait.
double reference_work(const Problem& problem);

/// Compares two contiguous tensors on the host and takes what it finds into `check`. The tolerance is `slack` times
/// what rounding explains.
void compare(Check& check, const Problem& problem, const Computation& computation, const Tensor& result,
             const Tensor& expected, double slack = 1);

/// Runs the CPU's `reference` kernel on copies of the inputs in float64 and compares its results with the outputs.
Check check_against_reference(const KernelRegistry& registry, const Problem& problem, const Computation& computation,
                              const Operands& operands);

}  // namespace xpuruntime
