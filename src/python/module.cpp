#include "core/environment_variable.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "xpuruntime/runtime/runtime.h"

NB_MODULE(_core, module) {
  using namespace xpuruntime::python;
  static bool imported = false;
  if (imported) throw nanobind::import_error("xpuruntime can be imported once in a process");
  imported = true;
  wait_for_threads_at_exit();
  nanobind::set_leak_warnings(false);  // a program's own cycles at its end are none of ours to report
  module.doc() = "The library behind xpuruntime. Use the names of the package itself.";
  module.attr("__version__") = std::string(xpuruntime::version()).c_str();
  // A child that is forked while another thread imports what it imports too hangs in Python: not later, in calls.
  for (const char* name : {"json", "threading", "types"}) nanobind::module_::import_(name);
  bind_errors(module);
  bind_types(module);
  bind_tensor(module);
  bind_policy(module);
  bind_decision(module);
  bind_log(module);
  bind_ops(module);
  bind_op_rows(module);
  bind_inquiry(module);
  bind_execution_policy(module);
  bind_scopes(module);
  bind_callables(module);
  bind_problem(module);
  bind_profile(module);
  bind_kernels(module);
  bind_precision(module);
  bind_amp_registry(module);
  bind_grad_scaler(module);
  bind_selector(module);
  bind_registry(module);
  bind_registered_ops(module);
  bind_tune(module);
  bind_ranges(module);
  bind_store(module);
  bind_lock(module);
  bind_report(module);
  bind_session(module);
  bind_quantization(module);
  bind_graph(module);
  bind_synchronize(module);
  bind_opencl_kernel(module);
  if (xpuruntime::environment_variable("XPURUNTIME_PLUGINS") == nullptr) return;
  try {  // now: problems, policies and locks may be read first, and speak of what plugins bring
    xpuruntime::Runtime::global();
  } catch (const xpuruntime::Error&) {
    // The first call tries again, and says so.
  }
}
