#include "xpuruntime/dispatch/scope.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "dispatch/dispatcher_impl.h"
#include "dispatch/thread_state.h"

namespace xpuruntime {
namespace {

std::atomic<std::uint64_t> next_token{1};

}  // namespace

void Dispatcher::set_policy(const KernelPolicy& policy) {
  ScopePtr scope = impl_->make_scope(policy, {}, {});
  const std::lock_guard guard(impl_->mutex);
  impl_->base_scope = std::move(scope);
  publish_base();
}

// With the mutex held.
void Dispatcher::publish_base() {
  const std::uint64_t refused = impl_->refuses_unlocked() ? ~std::uint32_t{0} : 0;
  base_.store(refused << 32 | impl_->base_scope->id, std::memory_order_release);
}

void Dispatcher::set_lock(const LockUse& lock) {
  {
    const std::lock_guard guard(impl_->mutex);
    impl_->process_lock = lock;
  }
  hold_locks(0);
  registry_.invalidate();  // scopes of any age are under it now
}

std::optional<LockUse> Dispatcher::lock() const { return impl_->lock_over(*current_scope()); }

void Dispatcher::hold_locks(int change) {
  const std::lock_guard guard(impl_->mutex);
  impl_->lock_holds += change;
  publish_base();
}

LockHold::LockHold(Dispatcher& dispatcher) : dispatcher_(dispatcher) { dispatcher_.hold_locks(1); }

LockHold::~LockHold() { dispatcher_.hold_locks(-1); }

ScopePtr Dispatcher::current_scope() const {
  if (const ThreadState& state = thread_state(); !state.scopes.empty()) return state.scopes.back().second;
  const std::lock_guard lock(impl_->mutex);
  return impl_->base_scope;
}

KernelPolicy Dispatcher::policy() const { return current_scope()->policy; }

ScopePtr Dispatcher::make_scope(const KernelPolicy& policy, const Autocast& autocast,
                                const std::optional<LockUse>& lock) const {
  return impl_->make_scope(policy, autocast, lock);
}

ScopePtr Dispatcher::layered_scope(const KernelPolicy& policy) const {
  const ScopePtr scope = current_scope();
  return impl_->make_scope(scope->policy.merge(policy), scope->autocast, scope->lock);
}

ScopePtr Dispatcher::layered_scope(const LockUse& lock) const {
  const ScopePtr scope = current_scope();
  return impl_->make_scope(scope->policy, scope->autocast, lock);
}

ScopePtr Dispatcher::layered_scope(const Autocast& autocast) const {
  const ScopePtr scope = current_scope();
  return impl_->make_scope(scope->policy, autocast, scope->lock);
}

std::uint64_t Dispatcher::enter_scope(ScopePtr scope) {
  if (scope == nullptr) {
    fail(ErrorCode::invalid_argument, "enter_scope", "null scope; pass one from current_scope");
  }
  if (scope->dispatcher != id_) {
    fail(ErrorCode::invalid_argument, "enter_scope",
         "the scope is another dispatcher's; pass one from this one's current_scope or layered_scope");
  }
  ThreadState& state = thread_state();
  const std::uint64_t token = next_token.fetch_add(1, std::memory_order_relaxed);
  state.scopes.emplace_back(token, std::move(scope));
  state.take_scope();
  return token;
}

bool Dispatcher::try_leave_scope(std::uint64_t token) noexcept {
  ThreadState& state = thread_state();
  auto& scopes = state.scopes;
  const auto found =
      std::find_if(scopes.begin(), scopes.end(), [&](const auto& entry) { return entry.first == token; });
  if (found == scopes.end()) return false;
  scopes.erase(found);
  state.take_scope();
  const bool casting = std::any_of(scopes.begin(), scopes.end(), [](const auto& s) { return s.second->autocast.on(); });
  if (!casting) state.release_casts();
  return true;
}

void Dispatcher::leave_scope(std::uint64_t token) {
  if (try_leave_scope(token)) return;
  fail(ErrorCode::invalid_argument, "leave_scope",
       "scope " + std::to_string(token) +
           " is not in force on this thread; leave each scope once, on the thread that entered it");
}

ScopeGuard::ScopeGuard(Dispatcher& dispatcher, ScopePtr scope) : dispatcher_(dispatcher) {
  if (scope != nullptr && scope->lock && scope->lock->lock != nullptr) hold_.emplace(dispatcher);
  token_ = dispatcher.enter_scope(std::move(scope));
}

ScopeGuard::~ScopeGuard() { dispatcher_.try_leave_scope(token_); }

ScopedPolicy::ScopedPolicy(Dispatcher& dispatcher, const KernelPolicy& policy)
    : ScopeGuard(dispatcher, dispatcher.layered_scope(policy)) {}

ScopedPolicy::ScopedPolicy(Dispatcher& dispatcher, ScopePtr scope) : ScopeGuard(dispatcher, std::move(scope)) {}

ScopedLock::ScopedLock(Dispatcher& dispatcher, const LockUse& lock)
    : ScopeGuard(dispatcher, dispatcher.layered_scope(lock)) {}

ScopedAutocast::ScopedAutocast(Dispatcher& dispatcher, const AmpRegistry& registry, bool enabled,
                               std::optional<DataType> dtype)
    : ScopeGuard(dispatcher, dispatcher.layered_scope(make_autocast(registry, enabled, dtype))) {}

}  // namespace xpuruntime
