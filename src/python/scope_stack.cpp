#include "python/scope_stack.h"

#include <algorithm>
#include <atomic>
#include <iterator>

#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

Dispatcher& dispatcher() { return Runtime::global().dispatcher(); }

struct MakeScope {
  const ScopePtr& below;

  ScopePtr operator()(const KernelPolicy& policy) const {
    return dispatcher().make_scope(below->policy.merge(policy), below->autocast, below->lock);
  }
  ScopePtr operator()(const Autocast& autocast) const {
    return dispatcher().make_scope(below->policy, autocast, below->lock);
  }
  ScopePtr operator()(const LockUse& lock) const {
    return dispatcher().make_scope(below->policy, below->autocast, lock);
  }
  ScopePtr operator()(const ScopePtr& captured) const { return captured; }
};

/// Scopes whose strategy looks at times are made anew: the measurements may have changed.
bool reads_times(const Scope& scope) {
  return scope.policy.auto_strategy.value_or(Strategy::first_supported) != Strategy::first_supported;
}

bool has_lock(const Layer& layer) {
  if (const auto* captured = std::get_if<ScopePtr>(&layer)) {
    return (*captured)->lock && (*captured)->lock->lock != nullptr;
  }
  const auto* use = std::get_if<LockUse>(&layer);
  return use != nullptr && use->lock != nullptr;
}

/// What this thread's dispatcher has from Python. It dies with its thread and leaves nothing: the dispatcher drops a
/// thread's scopes itself.
struct Mirror {
  struct Entered {
    std::uint64_t id = 0;
    std::uint64_t token = 0;
  };
  std::uint64_t serial = 0;
  std::vector<Entered> entered = {};
};

Mirror& thread_mirror() {
  thread_local Mirror mirror;
  return mirror;
}

}  // namespace

std::uint64_t new_scope_number() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::shared_ptr<const Layer> ScopeLayer::layer() const {
  if (!requested_) return layer_;
  const AmpRegistry& registry = requested_->registry == nullptr ? Runtime::global().amp() : *requested_->registry;
  return std::make_shared<const Layer>(make_autocast(registry, requested_->enabled, requested_->dtype));
}

ScopePtr ScopeLayer::over(const std::shared_ptr<const Layer>& layer, const ScopePtr& below) {
  if (layer == layer_) {
    const std::lock_guard guard(mutex_);
    if (last_below_ == below) return last_;
  }
  ScopePtr made = std::visit(MakeScope{below}, *layer);
  if (layer != layer_ || reads_times(*made)) return made;
  const std::lock_guard guard(mutex_);
  last_below_ = below;
  last_ = made;
  return made;
}

void ScopeLayer::count_enter() {
  const std::lock_guard guard(mutex_);
  if (entered_++ == 0 && layer_ != nullptr && has_lock(*layer_)) hold_.emplace(dispatcher());
}

bool ScopeLayer::count_leave() {
  const std::lock_guard guard(mutex_);
  if (entered_ == 0) return false;
  if (--entered_ == 0) hold_.reset();
  return true;
}

ScopeStack with_layer(const ScopeStack* stack, ScopeLayer& owner) {
  ScopeStack made{new_scope_number(), stack == nullptr ? std::vector<ScopeEntry>() : stack->entries};
  std::shared_ptr<const Layer> layer = owner.layer();
  auto hold = has_lock(*layer) ? std::make_shared<const LockHold>(dispatcher()) : nullptr;
  // Not the stack's own innermost: the library may have entered a scope that a callback of ours now runs in.
  ScopePtr below = dispatcher().current_scope();
  ScopePtr scope = owner.over(layer, below);
  made.entries.push_back(
      {new_scope_number(), owner.number(), std::move(layer), std::move(below), std::move(scope), std::move(hold)});
  return made;
}

std::optional<ScopeStack> without_layer(const ScopeStack& stack, const ScopeLayer& owner) {
  const auto found = std::find_if(stack.entries.rbegin(), stack.entries.rend(),
                                  [&](const ScopeEntry& entry) { return entry.owner == owner.number(); });
  if (found == stack.entries.rend()) return std::nullopt;
  const auto removed = std::prev(found.base());
  ScopeStack made{new_scope_number(), {stack.entries.begin(), removed}};
  ScopePtr below = removed->below;
  for (auto entry = std::next(removed); entry != stack.entries.end(); ++entry) {
    ScopePtr scope = std::visit(MakeScope{below}, *entry->layer);
    made.entries.push_back({new_scope_number(), entry->owner, entry->layer, std::move(below), scope, entry->hold});
    below = std::move(scope);
  }
  return made;
}

std::uint64_t mirrored_serial() { return thread_mirror().serial; }

void mirror(const ScopeStack* stack) {
  Mirror& here = thread_mirror();
  const std::vector<ScopeEntry> none;
  const std::vector<ScopeEntry>& wanted = stack == nullptr ? none : stack->entries;
  std::size_t common = 0;
  while (common < wanted.size() && common < here.entered.size() && wanted[common].id == here.entered[common].id) {
    ++common;
  }
  for (; here.entered.size() > common; here.entered.pop_back()) dispatcher().leave_scope(here.entered.back().token);
  for (std::size_t i = common; i < wanted.size(); ++i) {
    here.entered.push_back({wanted[i].id, dispatcher().enter_scope(wanted[i].scope)});
  }
  here.serial = stack == nullptr ? 0 : stack->serial;
}

}  // namespace xpuruntime::python
