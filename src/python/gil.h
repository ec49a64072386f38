#pragma once

#include "python/bindings.h"

namespace xpuruntime::python {

/// Lets go of the GIL for a block. A thread that comes back when the interpreter is ending stops there for good: Python
/// would end it in a way that no C++ code survives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil();
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

}  // namespace xpuruntime::python
