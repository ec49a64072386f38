#pragma once

#include <cmath>

#include "backends/oracle_references.h"

// Gradients in float64 by plain loops, written from the formulas and not from any kernel; oracle_backward_test.cpp
// holds them against finite differences of the forward references. Their bounds are put together as those of the
// forward references are, from the same parts.

namespace xpuruntime::oracle {

/// Sums of products that are put together term by term, in any order.
class TermSums {
 public:
  explicit TermSums(std::size_t count) : value_(count), size_(count), slack_(count), terms_(count) {}

  /// A term that may be off by `slack` before it is added.
  void add(std::size_t i, double term, double slack = 0) {
    value_[i] += term;
    size_[i] += std::fabs(term);
    slack_[i] += slack;
    ++terms_[i];
  }
  /// n products and n - 1 additions: one rounding more than a sum of n terms. What is summed for a while in one place
  /// and then added elsewhere, as images and tiles are, is rounded once more.
  Answer answer() const {
    Answer out;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      out.add(value_[i], slack_[i] + (sum_units(terms_[i]) + 2) * size_[i]);
    }
    return out;
  }

 private:
  Values value_, size_, slack_, terms_;
};

bool has_gradients(OpId op);

}  // namespace xpuruntime::oracle
