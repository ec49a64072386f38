#include "python/gil.h"

#include <dlfcn.h>
#include <unistd.h>

namespace xpuruntime::python {
namespace {

/// Public since Python 3.13, and there before under another name.
bool is_finalizing() {
  using Asked = int (*)();
  static const auto asked = [] {
    void* found = dlsym(RTLD_DEFAULT, "Py_IsFinalizing");
    return reinterpret_cast<Asked>(found != nullptr ? found : dlsym(RTLD_DEFAULT, "_Py_IsFinalizing"));
  }();
  return asked != nullptr && asked() != 0;
}

/// It is the one that ends the interpreter, and may come back.
bool on_main_thread() { return gettid() == getpid(); }

}  // namespace

WithoutGil::~WithoutGil() {
  while (is_finalizing() && !on_main_thread()) pause();
  PyEval_RestoreThread(state_);
}

}  // namespace xpuruntime::python
