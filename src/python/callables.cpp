#include "python/callables.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/core/mutex.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

std::atomic<bool> ended{false};

// Every function that the library holds; the GIL guards it. Apart from the holders, so that all of them can be let go
// when the interpreter ends: what they refer to may be anything, this module too.
std::unordered_map<std::uint64_t, PyObject*>& functions() {
  static auto* const map = new std::unordered_map<std::uint64_t, PyObject*>;
  return *map;
}

// Functions that nobody holds any more. The last holder may go under a lock of the library, where waiting for the GIL
// could wait for ever: the main thread lets go of them when it is back in Python.
Mutex unheld_mutex;
std::vector<std::uint64_t> unheld;

int let_go_of_unheld(void*) {
  std::vector<std::uint64_t> ids;
  {
    const std::lock_guard lock(unheld_mutex);
    ids.swap(unheld);
  }
  for (const std::uint64_t id : ids) {
    auto node = functions().extract(id);
    if (!node.empty()) Py_DECREF(node.mapped());  // may run any code: the map is as it should be by now
  }
  return 0;
}

void let_go_of_all() {
  ended.store(true);
  const auto all = std::move(functions());
  functions().clear();
  for (const auto& [id, function] : all) Py_DECREF(function);
}

int raise_kept(void* exception) {
  const nb::object value = nb::steal(static_cast<PyObject*>(exception));
  PyErr_SetObject(value.type().ptr(), value.ptr());
  return -1;
}

bool matches(const nb::python_error& error, PyObject* type) { return error.matches(nb::handle(type)); }

/// Not for the library, but for the program that called it. The main thread would be the wrong one to end for a
/// SystemExit of another: Python ends that one alone.
bool is_for_the_program(const nb::python_error& error) {
  if (matches(error, PyExc_Exception)) return false;
  return matches(error, PyExc_KeyboardInterrupt) || in_main_thread();
}

// Rules that ask what they answer would use up the stack before Python's own limit.
constexpr int deepest = 32;

std::string too_deep_text() {
  return "RecursionError: " + std::to_string(deepest) + " Python callbacks run inside each other";
}

std::string text_of(const nb::python_error& error) {
  const std::string text = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string message = python_str(error.value());
  // Each of them would wrap the text of the one inside in its own.
  if (message.find(too_deep_text()) != message.npos) return too_deep_text();
  return message.empty() ? text : text + ": " + message;
}

CallbackFailure failure_of(const nb::python_error& error) {
  CallbackFailure failure;
  failure.text = text_of(error);
  if (is_for_the_program(error)) {
    // Not the caller's values are wrong then, but nothing must be set aside for it either.
    failure.code = ErrorCode::invalid_argument;
    Runtime::global().registry().invalidate();  // what was decided meanwhile is decided again
    raise_later(error);                         // last: Python code that ran here would get it
  } else if (matches(error, PyExc_MemoryError)) {
    failure.code = ErrorCode::out_of_memory;
  } else if (matches(error, nb::module_::import_("xpuruntime.errors").attr("NotSupportedError").ptr())) {
    failure.code = ErrorCode::not_supported;  // a call inside that a lock or a policy refuses: no fault of its own
  }
  return failure;
}

}  // namespace

bool in_main_thread() {
  try {
    const nb::object main = nb::module_::import_("threading").attr("main_thread")();
    return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
  } catch (const nb::python_error&) {  // a signal or a pending call: they come to the main thread alone
    return true;
  }
}

struct Callable::Entry {
  explicit Entry(nb::handle function) {
    let_go_of_unheld(nullptr);
    static std::uint64_t next = 0;
    id = ++next;
    functions().emplace(id, function.inc_ref().ptr());
  }
  ~Entry() {
    if (!interpreter_alive()) return;
    {
      const std::lock_guard lock(unheld_mutex);
      unheld.push_back(id);
    }
    Py_AddPendingCall(let_go_of_unheld, nullptr);  // where its queue is full, the next one does it
  }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

  std::uint64_t id = 0;
};

Callable::Callable(nb::handle function) : entry_(std::make_shared<const Entry>(function)) {}

nb::object Callable::get() const {
  const auto found = functions().find(entry_->id);
  return found == functions().end() ? nb::object() : nb::borrow(found->second);
}

void raise_later(const nb::python_error& error) {
  PyObject* value = error.value().inc_ref().ptr();
  if (Py_AddPendingCall(raise_kept, value) != 0) Py_DECREF(value);
}

bool interpreter_alive() { return !ended.load() && Py_IsInitialized() != 0; }

std::optional<CallbackFailure> call_back(const Callable& callable, const std::function<void(nb::handle)>& call) {
  thread_local int depth = 0;
  if (depth >= deepest) return CallbackFailure{ErrorCode::device_error, too_deep_text(), true};
  const struct Deeper {
    Deeper() { ++depth; }
    ~Deeper() { --depth; }
  } deeper;
  const CallbackFailure no_python{ErrorCode::device_error, "Python has ended, and its function with it"};
  if (!interpreter_alive()) return no_python;
  const WithGil gil;
  const nb::object function = callable.get();
  if (!function.is_valid()) return no_python;
  try {
    call(function);
    return std::nullopt;
  } catch (const nb::python_error& error) {
    return failure_of(error);
  } catch (const std::exception&) {
    return CallbackFailure{ErrorCode::device_error, exception_text()};
  }
}

void bind_callables(nb::module_&) { nb::module_::import_("atexit").attr("register")(nb::cpp_function(let_go_of_all)); }

}  // namespace xpuruntime::python
