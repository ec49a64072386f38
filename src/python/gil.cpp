#include "python/gil.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <thread>

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

// The threads inside WithoutGil and outside of any WithGil there: those that run C++ code when the interpreter ends.
std::atomic<int> running{0};
thread_local bool counted = false;

void count(bool on) {
  counted = on;
  running.fetch_add(on ? 1 : -1, std::memory_order_acq_rel);
}

}  // namespace

void stop_for_good() {
  for (;;) pause();
}

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) { count(true); }

WithoutGil::~WithoutGil() {
  count(false);
  taken([&] { PyEval_RestoreThread(state_); });
}

WithGil::WithGil() : counted_(counted) {
  if (counted_) count(false);
  state_ = taken([] { return PyGILState_Ensure(); });
}

WithGil::~WithGil() {
  if (counted_) count(true);
  PyGILState_Release(state_);
}

void wait_for_threads_at_exit() {
  pthread_atfork(nullptr, nullptr, [] { running = counted ? 1 : 0; });  // a child has only the thread that forked
  Py_AtExit([] {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(5);
    while (running.load(std::memory_order_acquire) > 0 && std::chrono::steady_clock::now() < deadline) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
}

}  // namespace xpuruntime::python

// Python code that C++ calls, or runs because it lets go of an object, may hand the GIL to others and ask for it again.
// Were the thread ended there, every C++ frame below would destroy its Python objects without the GIL. So the linker
// leads each such call of this module, nanobind's among them, through a frame that stops the thread before (--wrap in
// CMakeLists.txt).
extern "C" {
PyObject* real_vectorcall(PyObject*, PyObject* const*, std::size_t, PyObject*) asm("__real_PyObject_Vectorcall");
PyObject* real_method_call(PyObject*, PyObject* const*, std::size_t, PyObject*) asm("__real_PyObject_VectorcallMethod");
PyObject* guarded_vectorcall(PyObject*, PyObject* const*, std::size_t, PyObject*) asm("__wrap_PyObject_Vectorcall");
PyObject* guarded_method_call(PyObject*, PyObject* const*, std::size_t,
                              PyObject*) asm("__wrap_PyObject_VectorcallMethod");

void real_dealloc(PyObject*) asm("__real__Py_Dealloc");
void real_decref(PyObject*) asm("__real__Py_DecRef");  // what Py_DECREF is in the stable ABI
void guarded_dealloc(PyObject*) asm("__wrap__Py_Dealloc");
void guarded_decref(PyObject*) asm("__wrap__Py_DecRef");

void guarded_dealloc(PyObject* object) {
  xpuruntime::python::taken([&] { real_dealloc(object); });
}

void guarded_decref(PyObject* object) {
  xpuruntime::python::taken([&] { real_decref(object); });
}

PyObject* guarded_vectorcall(PyObject* function, PyObject* const* arguments, std::size_t count, PyObject* names) {
  return xpuruntime::python::taken([&] { return real_vectorcall(function, arguments, count, names); });
}

PyObject* guarded_method_call(PyObject* name, PyObject* const* arguments, std::size_t count, PyObject* names) {
  return xpuruntime::python::taken([&] { return real_method_call(name, arguments, count, names); });
}
}
