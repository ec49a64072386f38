#pragma once

#include "python/bindings.h"

namespace xpuruntime::python {

/// Lets go of the GIL for a block. A thread that comes back when the interpreter is ending stops there.
class WithoutGil {
 public:
  WithoutGil();
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

/// Takes the GIL for a block, on any thread. One that comes when the interpreter is ending stops there.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  bool counted_;
  PyGILState_STATE state_;
};

/// Has the end of the process wait, once the interpreter has ended, for the threads that are inside WithoutGil: a
/// library that one of them is loading or calling would otherwise be torn down under it. It waits at most five seconds.
void wait_for_threads_at_exit();

}  // namespace xpuruntime::python
