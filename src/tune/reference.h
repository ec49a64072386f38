#pragma once

#include <limits>
#include <string>
#include <vector>

#include "tune/check.h"
#include "tune/slack.h"
#include "tune/slices.h"

namespace xpuruntime {

/// What the CPU's `reference` kernel makes of a problem's inputs in float64: computed once, compared with many results.
/// Where that would be too much work, a first and a last slice of the outputs stand for the whole.
class Reference {
 public:
  /// Never throws because of the reference: skipped() says why there is none.
  Reference(const KernelRegistry& registry, const Problem& problem, const Operands& operands,
            double most_work = std::numeric_limits<double>::infinity());

  const std::string& skipped() const { return skipped_; }
  /// The part of the work that was done, 1 for all.
  double share() const { return share_; }
  /// Tensors like the problem's outputs, on its device.
  Check compare_with(const std::vector<Tensor>& outputs, const Computation& computation) const;
  /// Two results with each other, both on the host: all of them, though there may be a reference of a part or of none.
  Check compare_both(const std::vector<Tensor>& outputs, const std::vector<Tensor>& others,
                     const Computation& computation) const;

 private:
  struct Part {
    Slice slice = {};
    std::vector<Tensor> expected = {};
    std::vector<Slack> slack = {};
  };
  std::string run(const Operands& operands, Part& part);
  double slack_outside(std::size_t output, const Tensor& values) const;

  const KernelRegistry& registry_;
  Problem problem_;
  std::vector<Part> parts_;
  double share_ = 1;
  std::string skipped_;
};

}  // namespace xpuruntime
