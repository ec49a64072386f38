#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "python/bindings.h"
#include "xpuruntime/core/error.h"

namespace xpuruntime::python {

/// A Python function that the library may copy, keep and drop on any thread, with the GIL or without. It goes when the
/// interpreter ends, whoever still holds this.
class Callable {
 public:
  explicit Callable(nb::handle function);
  /// Invalid once the interpreter has ended. With the GIL.
  nb::object get() const;

 private:
  struct Entry;
  std::shared_ptr<const Entry> entry_;
};

/// What a callback raised.
struct CallbackFailure {
  ErrorCode code = ErrorCode::device_error;
  std::string text = {};  // "ValueError: no"
  bool too_deep = false;  // nothing was called: callbacks lead to each other without end
};

/// Calls back into Python from any thread. What is raised comes back as data: no Python exception passes through the
/// library. What ends a program (SystemExit, KeyboardInterrupt: all that is no Exception) is raised again once the
/// program is back in Python; of another thread than the main one only a KeyboardInterrupt is.
std::optional<CallbackFailure> call_back(const Callable& callable, const std::function<void(nb::handle)>& call);

/// An argument for a callback. Python may keep it, so it gets one of its own: by itself nanobind would refer to ours.
template <class T>
nb::object own(const T& value) {
  return nb::cast(T(value));
}

/// Raises the same exception in the main thread once it is back in Python, or where it next asks Py_MakePendingCalls.
void raise_later(const nb::python_error& error);

/// Whether this is the thread that pending calls and signals come to. With the GIL.
bool in_main_thread();

/// False once the interpreter has begun to end: nothing may call into it any more.
bool interpreter_alive();

}  // namespace xpuruntime::python
