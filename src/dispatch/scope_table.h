#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "xpuruntime/core/mutex.h"
#include "xpuruntime/dispatch/scope.h"

namespace xpuruntime {

/// Interns scopes: equal contents, same object, same id, for as long as it is held. Ids are never used twice.
/// The table itself holds scopes that may be entered again: those without measurements and those with the latest.
class ScopeTable {
 public:
  explicit ScopeTable(std::uint64_t dispatcher) : dispatcher_(dispatcher) {}

  ScopePtr intern(const KernelPolicy& policy, std::shared_ptr<const Measurements> measurements,
                  const Autocast& autocast, const std::optional<LockUse>& lock);
  /// The scope of an id, if it is still held.
  ScopePtr find(std::uint32_t id) const;

 private:
  /// What a policy says. Rules, of which there may be many, are told apart by where they are, then by their text.
  struct PolicyKey {
    std::string others = {};  // all but the rules
    RuleList rules = {};

    bool operator<(const PolicyKey& other) const;
  };
  using Key = std::tuple<PolicyKey, const Measurements*, const AmpRules*, DataType, bool, const KernelLock*, LockMode>;

  /// Returns those that make room for it.
  std::vector<ScopePtr> hold(const ScopePtr& scope);
  void forget_dead();

  const std::uint64_t dispatcher_;
  mutable Mutex mutex_;
  std::uint32_t next_id_ = 1;
  std::map<Key, std::weak_ptr<const Scope>> by_content_;
  std::map<std::uint32_t, std::weak_ptr<const Scope>> by_id_;
  std::vector<ScopePtr> held_;
};

}  // namespace xpuruntime
