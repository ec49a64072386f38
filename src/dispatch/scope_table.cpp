#include "dispatch/scope_table.h"

namespace xpuruntime {
namespace {
constexpr std::size_t keep_at_most = 1024;
}

ScopePtr ScopeTable::intern(const KernelPolicy& policy, std::shared_ptr<const Measurements> measurements,
                            const Autocast& autocast, const LockUse& lock_use) {
  // A scope holds its rules, so their address is theirs for as long as it stands here. Off is one state.
  const Autocast kept = autocast.on() ? autocast : Autocast();
  Key key{policy.to_json(),    measurements.get(), kept.rules.get(), kept.config.target_precision,
          lock_use.lock.get(), lock_use.mode};
  const std::lock_guard lock(mutex_);
  const auto found = by_content_.find(key);
  if (found != by_content_.end()) return found->second;
  if (by_id_.size() >= keep_at_most) prune();
  auto scope =
      std::make_shared<const Scope>(Scope{next_id_++, dispatcher_, policy, kept, std::move(measurements), lock_use});
  by_content_.emplace(std::move(key), scope);
  by_id_.emplace(scope->id, scope);
  return scope;
}

ScopePtr ScopeTable::find(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

// Drops scopes that only this table still knows: held by both maps and nobody else.
void ScopeTable::prune() {
  for (auto it = by_content_.begin(); it != by_content_.end();) {
    if (it->second.use_count() > 2) {
      ++it;
      continue;
    }
    by_id_.erase(it->second->id);
    it = by_content_.erase(it);
  }
}

}  // namespace xpuruntime
