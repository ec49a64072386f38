#include "dispatch/scope_table.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace xpuruntime {
namespace {
constexpr std::size_t hold_at_most = 1024;

std::string without_rules(KernelPolicy policy) {
  policy.rules.clear();
  return policy.to_json();
}
}  // namespace

bool ScopeTable::PolicyKey::operator<(const PolicyKey& other) const {
  if (others != other.others) return others < other.others;
  return !rules.same_as(other.rules) && rules.text() < other.rules.text();
}

ScopePtr ScopeTable::intern(const KernelPolicy& policy, std::shared_ptr<const Measurements> measurements,
                            const Autocast& autocast, const std::optional<LockUse>& lock_use) {
  // A scope holds what the addresses in its key point at: they are its own for as long as it lives. Off is one state.
  const Autocast kept = autocast.on() ? autocast : Autocast();
  Key key{PolicyKey{without_rules(policy), policy.rules},
          measurements.get(),
          kept.rules.get(),
          kept.config.target_precision,
          lock_use.has_value(),
          lock_use ? lock_use->lock.get() : nullptr,
          lock_use ? lock_use->mode : LockMode::strict};
  std::vector<ScopePtr> let_go;  // after the lock: what they hold is large
  const std::lock_guard lock(mutex_);
  auto& known = by_content_[std::move(key)];
  if (auto found = known.lock()) return found;
  auto scope =
      std::make_shared<const Scope>(Scope{next_id_++, dispatcher_, policy, kept, std::move(measurements), lock_use});
  known = scope;
  by_id_.emplace(scope->id, scope);
  let_go = hold(scope);
  if (by_id_.size() > 2 * hold_at_most) forget_dead();
  return scope;
}

ScopePtr ScopeTable::find(std::uint32_t id) const {
  const std::lock_guard lock(mutex_);
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second.lock();
}

// Measurements are asked for anew with every scope: one with older ones is never asked for again.
std::vector<ScopePtr> ScopeTable::hold(const ScopePtr& scope) {
  std::vector<ScopePtr> let_go;
  if (held_.size() >= hold_at_most) let_go.swap(held_);
  const auto old = std::stable_partition(held_.begin(), held_.end(), [&](const ScopePtr& held) {
    return scope->measurements == nullptr || held->measurements == nullptr || held->measurements == scope->measurements;
  });
  let_go.insert(let_go.end(), std::make_move_iterator(old), std::make_move_iterator(held_.end()));
  held_.erase(old, held_.end());
  held_.push_back(scope);
  return let_go;
}

void ScopeTable::forget_dead() {
  std::erase_if(by_content_, [](const auto& entry) { return entry.second.expired(); });
  std::erase_if(by_id_, [](const auto& entry) { return entry.second.expired(); });
}

}  // namespace xpuruntime
