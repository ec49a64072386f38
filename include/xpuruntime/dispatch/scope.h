#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "xpuruntime/precision/autocast.h"
#include "xpuruntime/select/lock.h"
#include "xpuruntime/select/policy.h"
#include "xpuruntime/tune/statistics.h"

namespace xpuruntime {

class Dispatcher;

/// What is in force on a thread: an immutable, interned snapshot. Equal contents give the same scope, so the decision
/// table compares one number.
struct Scope {
  std::uint32_t id = 0;          // among those of its dispatcher
  std::uint64_t dispatcher = 0;  // whose it is
  KernelPolicy policy = {};
  Autocast autocast = {};
  /// Frozen when the scope was made, and only for strategies that look at times.
  std::shared_ptr<const Measurements> measurements = {};
  /// Nothing: the process's lock holds, if there is one. One without a lock in it: none does.
  std::optional<LockUse> lock = {};
};

using ScopePtr = std::shared_ptr<const Scope>;

/// While one lives, calls that no lock reaches are refused: workers of a program that is inside a lock would run
/// unlocked otherwise, without a sign. A lock of the whole process (Dispatcher::set_lock) reaches all, and a
/// ScopedLock without a lock says that its block is meant to run unlocked. Guards of scopes with a lock have one.
class LockHold {
 public:
  explicit LockHold(Dispatcher& dispatcher);
  ~LockHold();
  LockHold(const LockHold&) = delete;
  LockHold& operator=(const LockHold&) = delete;

 private:
  Dispatcher& dispatcher_;
};

/// Enters a scope for a block; the one before is back afterwards, also on exceptions. Guards that die in another order
/// than they were made in each take away their own scope: the latest one alive is in force. One that dies on a thread
/// other than its own changes nothing there, and its scope stays in force on its own thread.
class ScopeGuard {
 public:
  ScopeGuard(Dispatcher& dispatcher, ScopePtr scope);
  ~ScopeGuard();
  ScopeGuard(const ScopeGuard&) = delete;
  ScopeGuard& operator=(const ScopeGuard&) = delete;

 private:
  Dispatcher& dispatcher_;
  std::optional<LockHold> hold_ = {};
  std::uint64_t token_;
};

/// Layers a policy over the one in force on this thread, for a block.
class ScopedPolicy : public ScopeGuard {
 public:
  ScopedPolicy(Dispatcher& dispatcher, const KernelPolicy& policy);
  /// Enters a scope that another thread captured with Dispatcher::current_scope.
  ScopedPolicy(Dispatcher& dispatcher, ScopePtr scope);
};

/// Replays a lock for a block of this thread: what it does not hold is an error there, and so is a call on a thread
/// that no lock reaches (LockHold). Without a lock, none is in force in the block, not even the process's.
class ScopedLock : public ScopeGuard {
 public:
  ScopedLock(Dispatcher& dispatcher, const LockUse& lock);
};

/// Autocast for a block of this thread: ops run at the precision that the registry's rules give them, and the
/// dispatcher casts what has to be cast. The rules are taken as they are when the scope is entered. Scopes nest: the
/// innermost counts, and one that is not enabled turns autocast off.
class ScopedAutocast : public ScopeGuard {
 public:
  ScopedAutocast(Dispatcher& dispatcher, const AmpRegistry& registry, bool enabled = true,
                 std::optional<DataType> dtype = {});
};

}  // namespace xpuruntime
