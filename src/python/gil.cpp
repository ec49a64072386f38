#include "python/gil.h"

#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace xpuruntime::python {
namespace {

// The threads inside WithoutGil and outside of any WithGil there: those that run C++ code when the interpreter ends.
std::atomic<int> running{0};
thread_local bool counted = false;

void count(bool on) {
  counted = on;
  running.fetch_add(on ? 1 : -1, std::memory_order_acq_rel);
}

/// Where the interpreter ends or has ended, its threads' states are freed, and none may ask for the GIL but the thread
/// that ends it: the main one, or another that has a state and is in no call of ours.
void stop_if_ended(bool in_call) {
  if (Py_IsInitialized() != 0 || gettid() == getpid()) return;
  while (in_call || PyGILState_GetThisThreadState() == nullptr) pause();
}

}  // namespace

WithoutGil::WithoutGil() : state_(PyEval_SaveThread()) { count(true); }

WithoutGil::~WithoutGil() {
  count(false);
  stop_if_ended(true);
  PyEval_RestoreThread(state_);
}

WithGil::WithGil() : counted_(counted) {
  if (counted_) count(false);
  stop_if_ended(counted_);
  state_ = PyGILState_Ensure();
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

// A daemon thread that asks for the GIL of an interpreter that is ending is ended by Python with pthread_exit, wherever
// that is: in a call of ours, in Python code that we called, in a finalizer that some allocation ran. That unwinds the
// stack by force, and every C++ frame would destroy its Python objects without the GIL. So the thread stops for good at
// our innermost frame instead: the linker leads what is asked for each frame of this module, nanobind's among them,
// through here (--wrap in CMakeLists.txt). The process ends soon.
extern "C" {
_Unwind_Reason_Code real_personality(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*,
                                     _Unwind_Context*) asm("__real___gxx_personality_v0");
_Unwind_Reason_Code wrapped_personality(int, _Unwind_Action, _Unwind_Exception_Class, _Unwind_Exception*,
                                        _Unwind_Context*) asm("__wrap___gxx_personality_v0");

_Unwind_Reason_Code wrapped_personality(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                        _Unwind_Exception* exception, _Unwind_Context* context) {
  while ((actions & _UA_FORCE_UNWIND) != 0) pause();
  return real_personality(version, actions, kind, exception, context);
}
}
