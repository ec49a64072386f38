#pragma once

#include <atomic>

namespace xpuruntime::python {

// False until a scope is first entered in this process.
extern std::atomic<bool> scopes_in_use;

void sync_entered_scope();

/// Puts what the current context (thread or asyncio task) has in force on this thread's dispatcher. Called with the GIL
/// before everything that decides; costs nothing until a scope was first entered in this process.
inline void sync_scope() {
  if (scopes_in_use.load(std::memory_order_relaxed)) sync_entered_scope();
}

}  // namespace xpuruntime::python
