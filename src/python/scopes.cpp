#include "python/scopes.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>

#include "python/arguments.h"
#include "python/bindings.h"
#include "python/gil.h"
#include "python/scope_stack.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {

std::atomic<bool> scopes_in_use{false};

namespace {

// Methods of the context variable that holds the ScopeStack in force, or None. They live as long as the process.
PyObject* get_stack = nullptr;
PyObject* set_stack = nullptr;

nb::object stack_in_force() {
  PyObject* value = PyObject_CallNoArgs(get_stack);
  if (value == nullptr) throw nb::python_error();
  return nb::steal(value);
}

const ScopeStack* as_stack(const nb::object& value) {
  return value.is_none() ? nullptr : nb::inst_ptr<ScopeStack>(value);
}

void put_in_force(nb::object value) {
  const nb::object done = nb::steal(PyObject_CallFunctionObjArgs(set_stack, value.ptr(), nullptr));
  if (!done.is_valid()) throw nb::python_error();
  sync_entered_scope();
}

void enter(ScopeLayer& layer) {
  scopes_in_use.store(true, std::memory_order_relaxed);
  sync_entered_scope();
  const nb::object stack = stack_in_force();
  ScopeStack made;
  {
    const WithoutGil released;  // a scope may open the store
    made = with_layer(as_stack(stack), layer);
  }
  put_in_force(nb::cast(std::move(made)));
  layer.count_enter();
}

/// In a context where the layer is not in force this does nothing, if it was entered in another: a generator may be
/// closed in another one than it ran in.
void leave(ScopeLayer& layer) {
  const nb::object stack = stack_in_force();
  std::optional<ScopeStack> made;
  if (as_stack(stack) != nullptr) {
    const WithoutGil released;
    made = without_layer(*as_stack(stack), layer);
  }
  const bool was_entered = layer.count_leave();
  if (!made && !was_entered) {
    fail(ErrorCode::invalid_argument, "Scope",
         "it was not entered here; use it in a with statement, or call __enter__ once for each __exit__");
  }
  if (!made) return;
  put_in_force(made->entries.empty() ? nb::none() : nb::cast(std::move(*made)));
}

LockUse lock_use(const KernelLock* lock, nb::handle mode, const char* function) {
  const std::string name = text_from(mode, function, "mode");
  constexpr std::string_view known[] = {"strict", "revalidate"};
  if (name != known[0] && name != known[1]) fail_unknown(function, "lock mode", name, known);
  return {lock == nullptr ? nullptr : std::make_shared<const KernelLock>(*lock),
          name == known[0] ? LockMode::strict : LockMode::revalidate};
}

std::unique_ptr<ScopeLayer> autocast_layer(nb::handle dtype, bool enabled, const AmpRegistry* registry) {
  RequestedAutocast requested{enabled, {}, registry};
  if (!dtype.is_none()) requested.dtype = data_type_from(dtype);
  auto layer = std::make_unique<ScopeLayer>(requested);
  layer->layer();  // a dtype that is not a low precision is an error here, not where the scope is entered
  return layer;
}

std::unique_ptr<ScopeLayer> lock_layer(const KernelLock* lock, nb::handle mode) {
  return std::make_unique<ScopeLayer>(Layer(lock_use(lock, mode, "use_lock")));
}

void set_process_lock(const KernelLock* lock, nb::handle mode) {
  const LockUse use = lock_use(lock, mode, "set_lock");
  const WithoutGil released;
  Runtime::global().dispatcher().set_lock(use);
}

std::unique_ptr<ScopeLayer> captured_layer() {
  sync_scope();
  return std::make_unique<ScopeLayer>(Layer(Runtime::global().dispatcher().current_scope()));
}

std::unique_ptr<ScopeLayer> policy_layer(const KernelPolicy& policy) {
  policy.check();
  return std::make_unique<ScopeLayer>(Layer(policy));
}

void make_context_variable() {
  const nb::object variable =
      nb::module_::import_("contextvars").attr("ContextVar")("xpuruntime.scope", nb::arg("default") = nb::none());
  get_stack = nb::object(variable.attr("get")).release().ptr();
  set_stack = nb::object(variable.attr("set")).release().ptr();
}

}  // namespace

void sync_entered_scope() {
  const nb::object value = stack_in_force();
  const ScopeStack* stack = as_stack(value);
  if ((stack == nullptr ? 0 : stack->serial) != mirrored_serial()) mirror(stack);
}

void bind_scopes(nb::module_& module) {
  make_context_variable();
  nb::class_<ScopeStack>(module, "ScopeStack");
  nb::class_<ScopeLayer>(module, "ScopeLayer").def("enter", &enter).def("leave", &leave);
  module.def("policy_layer", &policy_layer, nb::arg("policy"));
  module.def("autocast_layer", &autocast_layer, nb::arg("dtype").none(), nb::arg("enabled"), nb::arg("registry").none(),
             nb::keep_alive<0, 3>());
  module.def("lock_layer", &lock_layer, nb::arg("lock").none(), nb::arg("mode"),
             nb::sig("def lock_layer(lock: KernelLock | None, mode: str) -> ScopeLayer"));
  module.def("set_process_lock", &set_process_lock, nb::arg("lock").none(), nb::arg("mode"),
             nb::sig("def set_process_lock(lock: KernelLock | None, mode: str) -> None"));
  module.def("captured_layer", &captured_layer);
}

}  // namespace xpuruntime::python
