#pragma once

namespace xpuruntime {

/// The processors that this process may use: those it is bound to, and no more than its container's share of time.
int usable_cores();

}  // namespace xpuruntime
