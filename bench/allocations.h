#pragma once

namespace xpuruntime::bench {

/// How often this thread has called operator new. Counted in programs that link allocations.cpp.
long allocations();

}  // namespace xpuruntime::bench
