#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "dispatch/prepared.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/registry/kernel_registry.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

/// What the tuner found in this process, by problem, among the kernels of one generation of the registry: what was
/// raced among others is raced again.
class TunedHere {
 public:
  std::shared_ptr<const Measurements> find(const SharedProblem& problem, std::uint32_t generation);
  /// `generation` is that of the kernels that raced.
  std::shared_ptr<const Measurements> add(const SharedProblem& problem, std::uint32_t generation,
                                          std::shared_ptr<const Measurements> found);
  void clear();

 private:
  void settle(std::uint32_t generation);

  Mutex mutex_;
  std::uint32_t generation_ = 0;
  std::unordered_map<SharedProblem, std::shared_ptr<const Measurements>> found_;
};

/// Whether a race has chosen for a problem already; a choice of other code under the name of a kernel here says
/// nothing, nor does a race that its budget ended with one kernel measured.
bool raced(const Measurements* measurements, const Problem& problem, const KernelRegistry& registry);

}  // namespace xpuruntime
