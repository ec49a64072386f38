#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tune/made_up_kernels.h"
#include "xpuruntime/tune/tuner.h"

namespace xpuruntime::testing {

inline const Problem problem = parse_problem("relu(f32[64])");

inline Status off_by_a_little(const RunArguments& arguments) {
  const Status status = relu(arguments);
  arguments.outputs[0]->as<float>()[63] += 1e-4F;
  return status;
}

class TunerTest : public ::testing::Test, protected MadeUpMachine {
 protected:
  TunerTest() {
    add("reference", 0, [this](const RunArguments& arguments) {
      now_us += reference_us;
      return relu(arguments);
    });
    options.isolate = false;  // the child's time is not seen here; probe_test has that
  }

  TuneResult tune(const std::string& incumbent, const Problem& what = problem,
                  const std::vector<QuarantineEntry>& quarantined = {}) {
    return Tuner(registry, [this] { return now_us; }).tune(what, incumbent, options, quarantined);
  }

  static const TunedCandidate& row(const TuneResult& result, const std::string& kernel) {
    for (const TunedCandidate& candidate : result.candidates) {
      if (candidate.kernel == kernel) return candidate;
    }
    ADD_FAILURE() << "no row of " << kernel;
    return result.candidates.front();
  }

  double reference_us = 300;
  TuneOptions options;
};

}  // namespace xpuruntime::testing
