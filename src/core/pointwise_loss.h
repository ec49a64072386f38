#pragma once

#include <cstdint>

namespace xpuruntime {

struct Problem;

enum class PointwiseLoss : std::uint8_t { divergence, divergence_of_logs, poisson, poisson_of_logs };

/// What the losses of elements are computed with, and what their sum is divided by.
struct PointwiseLossTerms {
  PointwiseLoss kind = PointwiseLoss::divergence;
  bool full = false;  // poisson: with Stirling's formula for the target's factorial
  double eps = 0;
  double divisor = 1;  // of a mean: all elements, or the batch
};

PointwiseLossTerms pointwise_loss_terms(const Problem& problem);

}  // namespace xpuruntime
