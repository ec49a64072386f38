#pragma once

#include "python/bindings.h"

namespace xpuruntime::python {

/// Ends nothing and never returns: for a thread that Python would end, now that the interpreter does, in a way that no
/// C++ code survives. The process ends soon.
[[noreturn]] void stop_for_good();

/// Lets go of the GIL for a block. A thread that comes back when the interpreter is ending stops there.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
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
  ~WithGil() { PyGILState_Release(state_); }
  WithGil(const WithGil&) = delete;
  WithGil& operator=(const WithGil&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace xpuruntime::python
