#include "python/gil.h"

#include <unistd.h>

namespace xpuruntime::python {
namespace {

// A daemon thread that asks for the GIL of an interpreter that is ending is ended by Python with pthread_exit, at once
// or after it has waited. That unwinds the stack like an exception that nobody may keep.
template <class Take>
auto taken(Take take) noexcept {
  try {
    return take();
  } catch (...) {
    stop_for_good();
  }
}

}  // namespace

void stop_for_good() {
  for (;;) pause();
}

WithoutGil::~WithoutGil() {
  taken([&] { PyEval_RestoreThread(state_); });
}

WithGil::WithGil() : state_(taken([] { return PyGILState_Ensure(); })) {}

}  // namespace xpuruntime::python
