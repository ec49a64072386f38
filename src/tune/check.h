#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tune/operands.h"
#include "xpuruntime/registry/kernel_registry.h"

namespace xpuruntime {

/// How far a result is from the float64 reference.
struct Check {
  std::string skipped = {};  // why nothing was compared; the rest has no meaning then
  double max_abs_error = 0;
  // Of the value that comes nearest to its bound or goes furthest beyond it:
  double ratio = 0;          // error over bound
  double max_rel_error = 0;  // the error over the largest magnitude of its tensor
  double tolerance = 0;      // the bound over the same
  bool within = true;
};

/// How a result came about, as far as its roundings go.
struct Computation {
  std::string_view kernel = {};
  double casting = 0;  // relative error that casts before and after the kernel explain
};

/// Products, roughly, that the reference goes through one by one: a large number is a long wait.
double reference_work(const Problem& problem);

/// What the values of one output may be off by (slack.h).
struct Bound {
  double unit = 0;
  std::span<const double> slack = {};  // of each value
  double times = 1;                    // 2 where both sides are rounded
};

/// Compares two contiguous tensors on the host and takes what it finds into `check`.
void compare(Check& check, const Computation& computation, const Tensor& result, const Tensor& expected,
             const Bound& bound);

/// Runs the CPU's `reference` kernel on copies of the inputs in float64 and compares its results with the outputs.
Check check_against_reference(const KernelRegistry& registry, const Problem& problem, const Computation& computation,
                              const Operands& operands);

}  // namespace xpuruntime
