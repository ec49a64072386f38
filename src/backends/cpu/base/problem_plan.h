#pragma once

#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::cpu {

/// A plan that keeps the problem and nothing else, as most references do.
class ProblemPlan final : public Plan {
 public:
  using Run = Status(const Problem& problem, const RunArguments& arguments);
  ProblemPlan(const Problem& problem, Run* run) : problem_(problem), run_(run) {}
  Status run(const RunArguments& arguments) const override { return run_(problem_, arguments); }

 private:
  Problem problem_;
  Run* run_;
};

}  // namespace xpuruntime::cpu
