#pragma once

namespace xpuruntime::python {

/// From now on, a child process that the library makes to try a kernel in can run Python: where a kernel is a Python
/// function, it does. Others' forks are left alone.
void mind_forks();

}  // namespace xpuruntime::python
