#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "xpuruntime/core/problem.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::oracle {

/// What came back from a run.
struct Result {
  std::string kernel;
  std::vector<double> values;  // of the first output, row-major
};

/// A problem with random inputs and its answer in float64, by loops written for this test alone.
class Case {
 public:
  Case(Problem problem, std::uint64_t seed);

  /// Uploads, runs, calls `after_launch` before waiting, downloads. The output is poisoned first.
  Result through(Runtime& runtime, const std::function<void()>& after_launch = {}) const;

  /// Empty if all is within the bound, else the first difference and the bound.
  std::string compare(const Result& result) const;

 private:
  Problem problem_;
  std::vector<std::vector<double>> inputs_;  // exactly the values the tensors hold, row-major
  std::vector<double> expected_;
  std::vector<double> magnitude_;  // sum of absolute terms of each output: what rounding errors scale with
  std::int64_t terms_ = 1;         // how many were summed
};

}  // namespace xpuruntime::oracle
