#pragma once

#include <cmath>
#include <span>
#include <vector>

#include "backends/oracle_data.h"
#include "xpuruntime/registry/kernel.h"

// Float64 references by plain loops, one function for each kind of op, and how far off a right kernel may be.
//
// The unit is u, the unit roundoff of the arithmetic: 2^-24 where f32, f16, bf16 and 8-bit floats are stored (all
// compute in f32), 2^-53 for f64. `slack` says how many u, times what size, an output may be off before it is rounded
// to its dtype. It is put together by first-order error analysis from these parts:
//   * one arithmetic operation: 1 u of its result (division and square root too);
//   * exp, log, erf, tanh and powers: 4 units in the last place, that is 8 u of the result;
//   * a sum of n terms: n u of the sum of the terms' sizes at worst, whatever the order; beyond 64 terms 8 sqrt(n) u,
//     which independent rounding errors exceed with a probability below 2 exp(-32) (Higham and Mary, "A new approach to
//     probabilistic rounding error analysis", 2019, theorem 2.4);
//   * an error e in the argument of a function: its derivative there times e.

namespace xpuruntime::oracle {

/// The right values of one output, and what its rounding errors may add up to, in u.
struct Answer {
  Values value;
  Values slack;

  void add(double v, double s) {
    value.push_back(v);
    slack.push_back(s);
  }
};

/// A number on its way through a computation with the error it may have picked up, in u.
struct Approximate {
  double value = 0;
  double slack = 0;
};

inline constexpr double function_units = 8;  // exp, log, erf, tanh, pow: 4 units in the last place

/// Whether a is the larger, +0 being above -0; never where one is NaN.
inline bool is_above(double a, double b) { return a > b || (a == b && std::signbit(b) && !std::signbit(a)); }

/// The factor of a sum of n terms.
double sum_units(double n);

/// logsumexp of a line without its largest element, and the log-probabilities: shared by softmax and losses.
struct LogSoftmax {
  std::vector<Approximate> log_probability;
  double log_sum = 0;  // of exp(x)
};
LogSoftmax log_softmax_of(const Values& line);

/// gelu, silu, relu ... of something that was computed, so that linear can use them too.
Approximate apply_activation(std::string_view name, Approximate x);

using Solve = std::vector<Answer>(const Problem& problem, const std::vector<Values>& inputs);

// The gradients that oracle_gradients_*.cpp compute, and a reference of two families.
Solve gradients_of_activation, gradients_of_class_loss, gradients_of_conv, gradients_of_layer_norm, gradients_of_linear,
    gradients_of_matmul, gradients_of_softmax, solve_rms_norm;

/// Ops and their reference. Each family lists its own.
struct Reference {
  OpList ops;
  Solve* solve = nullptr;
  Solve* gradients = nullptr;  // null: it has no backward
};
std::span<const Reference> attention_references();
std::span<const Reference> decoder_references();
std::span<const Reference> elementwise_references();
std::span<const Reference> loss_references();
std::span<const Reference> matrix_references();
std::span<const Reference> movement_references();
std::span<const Reference> indexing_references();
std::span<const Reference> arranging_references();
std::span<const Reference> norm_references();
std::span<const Reference> quantization_references();
std::span<const Reference> pointwise_references();
std::span<const Reference> reduce_references();
std::span<const Reference> window_references();

/// The one for this op.
std::vector<Answer> solve(const Problem& problem, const std::vector<Values>& inputs);

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter, std::array<std::uint32_t, 2> key);

}  // namespace xpuruntime::oracle
