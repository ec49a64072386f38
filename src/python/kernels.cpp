#include "python/kernels.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <iterator>
#include <stdexcept>
#include <unordered_set>
#include <utility>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/arrays.h"
#include "python/callables.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/input_copies.h"
#include "python/tensor_object.h"
#include "python/types.h"
#include "tune/probe.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

std::atomic<bool> in_use{false};

/// The numbers of the kernels that a warning was shown for. The GIL guards them.
std::unordered_set<std::uint64_t>& warned() {
  static auto* const numbers = new std::unordered_set<std::uint64_t>;
  return *numbers;
}

bool is_bool(nb::handle value) {
  if (nb::isinstance<nb::bool_>(value)) return true;
  const nb::handle type = value.type();
  const std::string name = nb::cast<std::string>(type.attr("__name__"));
  return (name == "bool" || name == "bool_") && nb::cast<std::string>(type.attr("__module__")) == "numpy";
}

/// Whether it is what an `async def` or a generator returns, whose code nobody will run; closed, or Python would warn.
bool is_coroutine(nb::handle answer) {
  const nb::module_ types = nb::module_::import_("types");
  if (!nb::isinstance(answer, types.attr("CoroutineType")) && !nb::isinstance(answer, types.attr("GeneratorType")) &&
      !nb::isinstance(answer, types.attr("AsyncGeneratorType")))
    return false;
  if (nb::hasattr(answer, "close")) answer.attr("close")();
  return true;
}

/// What is wrong with what a kernel's function returned; empty: nothing. Its results are in the outputs, or nowhere: an
/// output itself, as functions with `out=` return it, is as good as None.
std::string flaw_of_answer(nb::handle answer, std::span<const Tensor* const> outputs) {
  if (answer.is_none()) return {};
  if (is_coroutine(answer)) return "an async function or a generator is not run; register a plain function";
  try {
    const Tensor returned = tensor_from(answer, Access::read, "result", false);
    for (const Tensor* output : outputs) {
      if (returned.as<const std::byte>() == output->as<const std::byte>()) return {};
    }
  } catch (const std::exception&) {  // no array
  }
  return "it returned " + a_python_type(answer) + "; write the results into outputs, and return nothing";
}

/// True and False are a verdict, and so is a text: the reason for a no.
Verdict verdict_from(nb::handle answer) {
  if (nb::isinstance<nb::str>(answer)) return Verdict::no(nb::cast<std::string>(answer));
  if (!is_bool(answer)) {
    is_coroutine(answer);
    return Verdict::no("its supports function returned " + a_python_type(answer) + "; return True, False or a reason");
  }
  if (nb::cast<bool>(nb::bool_(answer))) return Verdict::yes();
  return Verdict::no("its supports function said no; return a string that says why");
}

/// True or False; None is a no. The truth of anything else, such as a text that says why not, says nothing.
bool holds_from(nb::handle answer) {
  if (answer.is_none()) return false;
  if (is_bool(answer)) return nb::cast<bool>(nb::bool_(answer));
  is_coroutine(answer);
  throw std::runtime_error("it returned " + a_python_type(answer) + "; return True or False");
}

std::function<Verdict(const Problem&, const DeviceProfile&)> python_supports(nb::handle supports) {
  if (supports.is_none()) return {};
  return [callable = Callable(supports)](const Problem& problem, const DeviceProfile& profile) {
    Verdict verdict;
    const auto failure =
        call_back(callable, [&](nb::handle function) { verdict = verdict_from(function(own(problem), own(profile))); });
    return failure ? Verdict::no("its supports function raised " + failure->text) : verdict;
  };
}

/// Tensors on memory that is the caller's, for the length of a call: Python may keep the objects, but not use them.
class Lent {
 public:
  Lent(std::span<const Tensor* const> tensors, bool read_only) {
    for (const Tensor* tensor : tensors)
      objects_.append(make_tensor_object(read_only ? tensor->as_read_only() : *tensor));
    kept_ = nb::tuple(objects_);
  }
  ~Lent() {
    for (const nb::handle object : kept_) nb::inst_ptr<TensorObject>(object)->expired = true;
  }
  Lent(const Lent&) = delete;
  Lent& operator=(const Lent&) = delete;

  const nb::list& list() const { return objects_; }

 private:
  nb::list objects_;
  nb::tuple kept_;  // the function may change its list
};

/// Returns what is wrong with what the function returned.
std::string call_run(nb::handle function, const Problem& problem, const RunArguments& arguments,
                     std::uint64_t workspace_bytes) {
  const Lent inputs(arguments.inputs, true);
  const Lent outputs(arguments.outputs, false);
  const auto call = [&](auto&&... more) {
    return flaw_of_answer(function(own(problem), inputs.list(), outputs.list(), more...), arguments.outputs);
  };
  if (workspace_bytes == 0) return call();
  const Dims bytes{static_cast<std::int64_t>(workspace_bytes)};
  const Tensor workspace = Tensor::view(arguments.workspace, DataType::uint8, bytes, problem.device);
  const Tensor* const pointer = &workspace;
  const Lent scratch({&pointer, 1}, false);
  return call(scratch.list()[0]);
}

/// Warns unless a warning of this number came before. With the GIL, which guards the numbers.
void warn_once(std::uint64_t number, const std::string& text) {
  if (!warned().insert(number).second) return;
  if (PyErr_WarnEx(PyExc_RuntimeWarning, text.c_str(), 1) == 0) return;
  nb::python_error raised;  // warnings are errors here
  if (in_main_thread()) return raise_later(raised);
  raised.discard_as_unraisable("a kernel's warning");
}

/// What a kernel raised in a child process that tried it, as Warning left it, unless the child has overwritten it.
void warn_of_child(std::string_view note) {
  std::uint64_t number = 0;
  const auto [end, flaw] = std::from_chars(note.data(), note.data() + note.size(), number);
  if (flaw != std::errc() || !interpreter_alive()) return;
  const WithGil gil;
  warn_once(number, printable_lines(note.substr(static_cast<std::size_t>(end - note.data()))));
}

std::string traceback_of(const nb::python_error& error) {
  const nb::object lines = nb::module_::import_("traceback").attr("format_exception")(error.value());
  const std::string text = python_str(nb::str("").attr("join")(lines));
  constexpr std::size_t longest = longest_note / 2;  // beside the kernel's name; the last lines say the most
  return text.size() <= longest ? text : "...\n" + text.substr(text.size() - longest);
}

/// Another kernel takes over from one that raised, and nobody would see why: its author hears of it once.
class Warning {
 public:
  explicit Warning(std::string_view kernel) : kernel_(shown(kernel)) {
    static std::uint64_t last = 0;
    number_ = ++last;
  }

  void warn(const nb::python_error& error) const {
    if (!error.matches(nb::handle(PyExc_Exception)) || warned().contains(number_)) return;
    std::string traceback;
    try {
      traceback = traceback_of(error);
    } catch (const nb::python_error& raised) {
      traceback = raised.what();
    }
    tell("raised; where the policy allows, another one runs instead. Shown once per kernel.\n" + traceback);
  }

  void warn_of_recursion(OpId op) const {
    if (!interpreter_alive()) return;
    const WithGil gil;
    if (warned().contains(number_)) return;
    const std::string name(to_string(op));
    tell("calls " + name + " again without end, itself or by what it calls, and is set aside. Inside a kernel of " +
         name + ", name another one for it: with xpuruntime.with_policy(" + name +
         "=\"reference\"). Shown once per kernel.");
  }

 private:
  /// With the GIL.
  void tell(const std::string& what) const {
    const std::string text = "kernel '" + kernel_ + "' " + what;
    // What a child prints is lost.
    if (!leave_note(std::to_string(number_) + text)) warn_once(number_, printable_lines(text));
  }

  const std::string kernel_;
  std::uint64_t number_ = 0;  // not the address: the note of a child outlives what it made
};

thread_local PyObject* raised_here = nullptr;  // owned; the GIL guards what it refers to

void keep_raised(const nb::python_error& error) {
  if (!error.matches(nb::handle(PyExc_Exception))) return;
  take_raised();
  raised_here = error.value().inc_ref().ptr();
}

Status call_python(const Callable& callable, const Warning& warning, const Problem& problem,
                   const RunArguments& arguments, std::uint64_t workspace_bytes) {
  const auto failure = call_back(callable, [&](nb::handle function) {
    try {
      const std::string flaw = call_run(function, problem, arguments, workspace_bytes);
      if (flaw.empty()) return;
      PyErr_SetString(PyExc_TypeError, flaw.c_str());
      throw nb::python_error();
    } catch (const nb::python_error& error) {
      warning.warn(error);
      keep_raised(error);
      throw;
    }
  });
  if (failure && failure->too_deep) warning.warn_of_recursion(problem.op);
  return failure ? Status(failure->code, "it raised " + failure->text) : Status();
}

std::function<Status(const Problem&, const RunArguments&)> python_run(nb::handle run, std::uint64_t workspace_bytes,
                                                                      bool in_place, const std::string& name) {
  return [callable = Callable(run), workspace_bytes, in_place, warning = Warning(name)](const Problem& problem,
                                                                                        const RunArguments& arguments) {
    if (in_place) return call_python(callable, warning, problem, arguments, workspace_bytes);
    try {
      const InputCopies copies(arguments);
      RunArguments given = arguments;
      given.inputs = copies.inputs();
      return call_python(callable, warning, problem, given, workspace_bytes);
    } catch (const Error& error) {
      return Status(error.code(), std::string(error.message()));
    }
  };
}

constexpr std::string_view direction_names[] = {"forward", "backward"};

Directions directions_from(nb::handle value, const char* function) {
  bool named[2] = {};
  for (const std::string& name : texts_from(value, function, "directions")) {
    const auto* const found = std::find(std::begin(direction_names), std::end(direction_names), name);
    if (found == std::end(direction_names)) fail_unknown(function, "direction", name, direction_names);
    named[found - direction_names] = true;
  }
  if (named[0] && named[1]) return Directions::both;
  if (named[0] || named[1]) return named[0] ? Directions::forward : Directions::backward;
  fail(ErrorCode::invalid_argument, function, "directions is empty; name \"forward\", \"backward\" or both");
}

std::string version_from(nb::handle value, const char* function) {
  if (value.is_none()) return {};
  std::string version = text_from(value, function, "version");
  if (version.empty()) fail(ErrorCode::invalid_argument, function, "version is empty; leave it out for none");
  return version;
}

/// Refuses a function that cannot be called as it will be. One that does not tell its parameters is taken.
void check_parameters(nb::handle run, bool with_workspace) {
  nb::object signature;
  try {
    // Its own: a function that wraps another may pass on other arguments than it gets.
    signature = nb::module_::import_("inspect").attr("signature")(run, nb::arg("follow_wrapped") = false);
    const nb::object bind = signature.attr("bind");
    with_workspace ? bind(0, 0, 0, 0) : bind(0, 0, 0);
  } catch (const nb::python_error& error) {
    if (!error.matches(nb::handle(PyExc_Exception))) throw;
    if (!signature.is_valid()) return;
    raise_type_error("[register_kernel] run is called as run(problem, inputs, outputs" +
                     std::string(with_workspace ? ", workspace)" : ")") + ", and is defined with " +
                     python_str(signature) + "; change its parameters" +
                     (with_workspace ? "" : ", or pass workspace_bytes for one more"));
  }
}

void register_kernel(nb::handle name, nb::handle op, nb::handle run, nb::handle supports, nb::handle device,
                     nb::handle workspace_bytes, nb::handle deterministic, nb::handle directions, nb::handle version,
                     nb::handle takes, nb::handle in_place) {
  constexpr const char* function = "register_kernel";
  check_callable(run, function, "run");
  if (!supports.is_none()) check_callable(supports, function, "supports");
  FunctionKernel kernel;
  kernel.name = text_from(name, function, "name");
  kernel.op = op_from(op, function);
  kernel.device_type = device_from(device).type;
  kernel.workspace_bytes = count_from(workspace_bytes, function, "workspace_bytes");
  check_parameters(run, kernel.workspace_bytes != 0);
  kernel.deterministic = boolean_from(deterministic, function, "deterministic");
  kernel.directions = directions_from(directions, function);
  kernel.version = version_from(version, function);
  for (const std::string& each : texts_from(takes, function, "takes")) {
    kernel.takes += (kernel.takes.empty() ? "" : "|") + each;
  }
  kernel.supports = python_supports(supports);
  kernel.run = python_run(run, kernel.workspace_bytes, boolean_from(in_place, function, "in_place"), kernel.name);
  in_use.store(true);
  const WithoutGil release;
  Runtime::global().registry().register_kernel(make_kernel(std::move(kernel)));
}

bool unregister_kernel(nb::handle name, nb::handle op, nb::handle device) {
  const std::string text = text_from(name, "unregister_kernel", "name");
  const OpId id = op_from(op, "unregister_kernel");
  const DeviceType type = device_from(device).type;
  const WithoutGil release;
  return Runtime::global().registry().unregister_kernel(id, type, text);
}

std::string load_plugin(nb::handle path) {
  const std::string file = path_from(path, "load_plugin");
  const WithoutGil release;
  return Runtime::global().registry().load_plugin(file);
}

}  // namespace

Condition python_condition(nb::handle condition) {
  check_callable(condition, "register_rule", "condition");
  return [callable = Callable(condition)](const Problem& problem, const DeviceProfile& profile) {
    bool holds = false;
    const auto failure =
        call_back(callable, [&](nb::handle function) { holds = holds_from(function(own(problem), own(profile))); });
    if (failure) throw std::runtime_error(failure->text);  // the selector takes it for a rejection, with this text
    return holds;
  };
}

bool python_kernels_in_use() { return in_use.load(std::memory_order_relaxed); }

nb::object take_raised() { return nb::steal(std::exchange(raised_here, nullptr)); }

void raise_with_cause(const Error& error) {
  const nb::object cause = take_raised();
  const bool caused = cause.is_valid() && error.message().find(python_str(cause)) != std::string_view::npos;
  set_python_error(error, caused ? cause.ptr() : nullptr);
  throw nb::python_error();
}

void bind_kernels(nb::module_& module) {
  set_note_reader(warn_of_child);
  module.def("register_kernel", register_kernel, nb::arg("name").none(), nb::arg("op").none(), nb::arg("run").none(),
             nb::arg("supports").none(), nb::arg("device").none(), nb::arg("workspace_bytes").none(),
             nb::arg("deterministic").none(), nb::arg("directions").none(), nb::arg("version").none(),
             nb::arg("takes").none(), nb::arg("in_place").none());
  module.def("unregister_kernel", unregister_kernel, nb::arg("name").none(), nb::arg("op").none(),
             nb::arg("device").none());
  module.def("load_plugin", load_plugin, nb::arg("path").none(),
             nb::sig("def load_plugin(path: str | os.PathLike[str]) -> str"),
             "Opens a shared library with a backend in it and returns the backend's name.\n\n"
             "It is trusted code that runs in this process.");
}

}  // namespace xpuruntime::python
