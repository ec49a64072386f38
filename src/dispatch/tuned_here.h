#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>

#include "dispatch/prepared.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

/// What the tuner found in this process, by problem, among the kernels of one generation of the registry: what was
/// raced among others is raced again.
class TunedHere {
 public:
  std::shared_ptr<const Measurements> find(const SharedProblem& problem, std::uint32_t generation);
  std::shared_ptr<const Measurements> add(const SharedProblem& problem, std::shared_ptr<const Measurements> found);
  void clear();

 private:
  Mutex mutex_;
  std::uint32_t generation_ = 0;
  std::unordered_map<SharedProblem, std::shared_ptr<const Measurements>> found_;
};

}  // namespace xpuruntime
