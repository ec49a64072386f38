#pragma once

#include <nanobind/nanobind.h>

namespace xpuruntime::python {

namespace nb = nanobind;

// One function a file: each puts its part of the library into the module.
void bind_errors(nb::module_& module);
void bind_types(nb::module_& module);
void bind_tensor(nb::module_& module);
void bind_ops(nb::module_& module);
void bind_op_rows(nb::module_& module);
void bind_policy(nb::module_& module);
void bind_decision(nb::module_& module);
void bind_log(nb::module_& module);
void bind_inquiry(nb::module_& module);
void bind_execution_policy(nb::module_& module);
void bind_scopes(nb::module_& module);
void bind_callables(nb::module_& module);
void bind_problem(nb::module_& module);
void bind_profile(nb::module_& module);
void bind_kernels(nb::module_& module);
void bind_precision(nb::module_& module);
void bind_amp_registry(nb::module_& module);
void bind_grad_scaler(nb::module_& module);
void bind_selector(nb::module_& module);
void bind_ranges(nb::module_& module);
void bind_registry(nb::module_& module);
void bind_registered_ops(nb::module_& module);
void bind_tune(nb::module_& module);
void bind_store(nb::module_& module);
void bind_lock(nb::module_& module);
void bind_report(nb::module_& module);
void bind_session(nb::module_& module);
void bind_quantization(nb::module_& module);
void bind_graph(nb::module_& module);
void bind_synchronize(nb::module_& module);
void bind_opencl_kernel(nb::module_& module);

}  // namespace xpuruntime::python
