#include "python/forking.h"

#include <pthread.h>

#include <csignal>

#include "python/callables.h"
#include "python/kernels.h"
#include "tune/probe.h"

namespace xpuruntime::python {
namespace {

// A thread that is gone in the child may have held the GIL there for ever, so the one that forks takes it first.
thread_local bool took_gil = false;
thread_local PyGILState_STATE gil = {};

void before() {
  took_gil = forking_to_probe() && python_kernels_in_use() && interpreter_alive();
  if (!took_gil) return;
  gil = PyGILState_Ensure();
  PyOS_BeforeFork();
}

void in_parent() {
  if (!took_gil) return;
  PyOS_AfterFork_Parent();
  PyGILState_Release(gil);
}

void in_child() {
  if (!took_gil) return;
  PyOS_AfterFork_Child();
  // Ctrl-C is for the parent, which ends this process; here it would pass for a flaw of the kernel.
  std::signal(SIGINT, SIG_IGN);
  PyGILState_Release(gil);
}

}  // namespace

void mind_forks() { pthread_atfork(before, in_parent, in_child); }

}  // namespace xpuruntime::python
