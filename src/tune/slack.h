#pragma once

#include <functional>
#include <vector>

#include "tune/operands.h"

// How far rounding alone may take a right result from the float64 reference. The bound on one value y is
//
//   (h |y| + u s) (1 + 2^-10) + smallest
//
// with h for the last rounding to the output's dtype, u the unit roundoff of the arithmetic, and s, the slack, from a
// first-order error analysis of the op on the inputs that random_operands makes. Its parts:
//   * an operation: the size of its result; exp, log, erf, tanh and powers: 8 times (4 units in the last place);
//   * a sum of n terms of one sign: min(n, 8 sqrt(n)) times the sum;
//   * a sum of n terms of random signs: see walk_units;
//   * an error in the argument of a function: its derivative times that error.

namespace xpuruntime {

using Slack = std::vector<double>;  // of each element of one output, in u

/// A float64 problem whose outputs the reference has computed.
struct Solved {
  const Problem& problem;
  const Operands& operands;
  DataType stored = DataType::float32;  // the coarser of the first input and the last output, as kernels get them
  DataType last = DataType::float32;    // of the last output, as kernels get it
  double unit = 0x1p-24;
  /// Runs the reference once more, on other tensors; false where it cannot.
  std::function<bool(const Problem&, const Operands&)> run = {};
};

/// u: 2^-24 where f32 or less is stored, as all of those compute in f32; 2^-52 for f64, as the reference rounds as
/// well.
double unit_roundoff(const Problem& problem);

/// Half the even spacing of the dtype's smallest values. f32 and bf16 results below 2^-126 may come as zero.
double smallest_of(DataType dtype);

/// Of each output.
std::vector<Slack> slack_of(const Solved& solved);

/// Of every value, where no reference has been computed: from the largest result alone.
double slack_of_largest(const Problem& problem, double largest);

/// How many terms one output sums up, going forward.
double summed_terms(const Problem& problem);

// ---- for the analyses of the families of ops ----

inline constexpr double function_units = 8;

/// The factor of a sum of n terms of one sign.
double sum_units(double n);

/// The factor of a sum of n terms of random signs, times the root of the sum of their squares, Q. Whatever the order,
/// the partial sums are walks that seldom go beyond some Q, and each rounds by at most u of itself, independently. With
/// 12 in place of the product of both, a value exceeds the bound with a probability near exp(-30). Up to 12 terms it is
/// the worst case. Two roundings more are those of the terms themselves.
double walk_units(double n);

/// Q of each output of an op that is a sum of products of its inputs: what it makes of their squares. Empty where the
/// reference cannot run it.
std::vector<Slack> root_of_squares(const Solved& solved, const Problem& problem);

/// The inputs, each put through `change(input, value)`, and blank outputs.
Operands changed_inputs(const Solved& solved, const Problem& problem,
                        const std::function<double(std::size_t, double)>& change);

/// What the reference makes of these; empty where it cannot.
std::vector<Slack> results_of(const Solved& solved, const Problem& problem, const Operands& operands);

/// The largest magnitude in a tensor of any dtype, and 0 in an empty one.
double largest_of(const Tensor& tensor);

/// The relative error of a softmax over n numbers that spread over `range`, and of its logarithm before the last step.
double softmax_units(double n, double range);

std::vector<Slack> slack_of_rows(const Solved& solved);      // norms and softmaxes
std::vector<Slack> slack_of_loss(const Solved& solved);      // both directions
std::vector<Slack> slack_of_backward(const Solved& solved);  // everything else that has gradients

}  // namespace xpuruntime
