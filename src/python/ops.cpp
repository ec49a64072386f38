#include <nanobind/stl/string.h>

#include <deque>
#include <utility>

#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/op_call.h"
#include "python/registered_ops.h"
#include "python/scopes.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

// Plain functions of Python's own kind: nothing stands between the interpreter and the call.
PyObject* contained(auto&& body) noexcept {
  try {
    return body().release().ptr();
  } catch (nb::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::bad_alloc&) {
    set_python_error({ErrorCode::out_of_memory, "ops", "the host has not enough memory; use smaller arrays"});
  } catch (const std::exception&) {
    set_python_error({ErrorCode::internal, "ops", exception_text()});
  }
  return nullptr;
}

template <std::size_t index>
PyObject* call_op(PyObject*, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  return contained([&] {
    OpCall call(signatures()[index]);
    call.parse(arguments, static_cast<std::size_t>(count), keywords);
    call.bind();
    return call.run();
  });
}

/// For an op that a program registered: the signature comes along.
PyObject* call_registered(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* keywords) {
  return contained([&] {
    OpCall call(*static_cast<const Signature*>(PyCapsule_GetPointer(self, nullptr)));
    call.parse(arguments, static_cast<std::size_t>(count), keywords);
    call.bind();
    return call.run();
  });
}

using Entry = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);
constexpr std::size_t most_functions = 256;

template <std::size_t... index>
constexpr std::array<Entry, sizeof...(index)> make_entries(std::index_sequence<index...>) {
  return {call_op<index>...};
}
constexpr std::array<Entry, most_functions> entries = make_entries(std::make_index_sequence<most_functions>());

/// Texts and definitions that functions point to, for as long as the process lives.
struct Definitions {
  std::deque<std::string> texts;
  std::deque<PyMethodDef> methods;
};

std::string document(const Signature& signature) {
  const OpInfo& info = op_info(signature.op);
  const std::string summary = info.summary.empty() ? "" : std::string(info.summary) + "\n\n";
  return std::string(signature.name) + "(" + parameter_text(signature, false) + ")\n--\n\n" + summary + "The op `" +
         std::string(info.name) +
         "`, by the kernel that is chosen for these arguments. `dtype` is what to compute in, where that is not left "
         "to\n"
         "the policy and autocast; `out` is an array to write the result to.";
}

nb::object make_function(const Signature& signature, Entry entry, nb::handle self) {
  static auto* definitions = new Definitions;
  const std::string& text = definitions->texts.emplace_back(document(signature));
  PyMethodDef& method = definitions->methods.emplace_back();
  method = {signature.name, reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(entry)),
            METH_FASTCALL | METH_KEYWORDS, text.c_str()};
  const nb::object name = nb::str("xpuruntime.ops");
  PyObject* function = PyCFunction_NewEx(&method, self.ptr(), name.ptr());
  if (function == nullptr) throw nb::python_error();
  return nb::steal(function);
}

void add_functions(nb::module_& ops) {
  nb::list all;
  for (std::size_t i = 0; i < signatures().size(); ++i) {
    const Signature& signature = signatures()[i];
    ops.attr(signature.name) = make_function(signature, entries[i], nb::handle());
    all.append(signature.name);
  }
  ops.attr("__all__") = all;
}

OpCall& bound(OpCall& call, const nb::tuple& arguments, const nb::dict& keywords) {
  call.parse(arguments, keywords);
  call.bind();
  return call;
}

nb::object backward(const std::string& op, const nb::tuple& arguments, nb::handle grad_output,
                    const nb::dict& keywords) {
  OpCall call(find_signature(op));
  return bound(call, arguments, keywords).run_backward(grad_output.ptr());
}

nb::list typed_signatures() {
  nb::list out;
  for (const Signature& signature : signatures()) {
    out.append(
        nb::make_tuple(signature.name, parameter_text(signature, true), std::string(op_info(signature.op).name)));
  }
  return out;
}

}  // namespace

nb::object function_of(const Signature& signature) {
  const nb::object self = nb::steal(PyCapsule_New(const_cast<Signature*>(&signature), nullptr, nullptr));
  if (!self.is_valid()) throw nb::python_error();
  return make_function(signature, call_registered, self);
}

void bind_ops(nb::module_& module) {
  if (signatures().size() > entries.size()) fail(ErrorCode::internal, "ops", "too many functions; report this");
  nb::module_ ops =
      module.def_submodule("ops", "One function for each op, with the names of PyTorch's functional API.");
  add_functions(ops);
  module.def(
      "backward",
      [](nb::handle op, const nb::tuple& arguments, nb::handle grad_output, const nb::dict& keywords) {
        return backward(text_from(op, "backward", "op"), arguments, grad_output, keywords);
      },
      nb::arg("op").none(), nb::arg("arguments"), nb::arg("grad_output").none(), nb::arg("keywords"),
      nb::sig("def backward(op: object, arguments: tuple[Any, ...], grad_output: object, keywords: dict[str, Any]) -> "
              "tuple[Any, ...]"));
  module.def(
      "explain_call",
      [](nb::handle op, const nb::tuple& arguments, const nb::dict& keywords) {
        OpCall call(find_signature(text_from(op, "explain", "op")));
        sync_scope();
        const Problem problem = bound(call, arguments, keywords).problem(true);
        const WithoutGil released;
        return Runtime::global().dispatcher().explain(problem, call.precision());
      },
      nb::arg("op").none(), nb::arg("arguments"), nb::arg("keywords"));
  module.def(
      "problem_of_call",
      [](nb::handle op, const nb::tuple& arguments, const nb::dict& keywords) {
        OpCall call(find_signature(text_from(op, "problem", "op")));
        return bound(call, arguments, keywords).problem();
      },
      nb::arg("op").none(), nb::arg("arguments"), nb::arg("keywords"),
      "The problem that a call with these arguments poses.");
  module.def("op_signatures", &typed_signatures, "Name, typed parameters and op of every function of `ops`.");
}

}  // namespace xpuruntime::python
