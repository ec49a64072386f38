#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/scope.h"

namespace xpuruntime {

/// Interns scopes: equal contents, same object, same id. Ids are never used twice.
class ScopeTable {
 public:
  explicit ScopeTable(std::uint64_t dispatcher) : dispatcher_(dispatcher) {}

  ScopePtr intern(const KernelPolicy& policy, std::shared_ptr<const Measurements> measurements,
                  const Autocast& autocast, const LockUse& lock);
  /// The scope of an id that somebody still holds or that is the latest of its kind.
  ScopePtr find(std::uint32_t id) const;

 private:
  using Key = std::tuple<std::string, const Measurements*, const AmpRules*, DataType, const KernelLock*, LockMode>;

  void prune();

  const std::uint64_t dispatcher_;
  mutable Mutex mutex_;
  std::uint32_t next_id_ = 1;
  std::map<Key, ScopePtr> by_content_;
  std::map<std::uint32_t, ScopePtr> by_id_;
};

}  // namespace xpuruntime
