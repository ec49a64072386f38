#include "python/session.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>

#include "python/arguments.h"
#include "python/arrays.h"
#include "python/gil.h"
#include "python/in_process_engine.h"
#include "python/policy_values.h"
#include "python/scopes.h"
#include "python/tensor_object.h"
#include "python/types.h"
#include "xpuruntime/graph/measure_engines.h"
#include "xpuruntime/graph/process_engine.h"
#include "xpuruntime/runtime/replay.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

std::shared_ptr<const KernelLock> lock_of_session(nb::handle value) {
  if (nb::isinstance<KernelLock>(value)) return std::make_shared<const KernelLock>(*nb::inst_ptr<KernelLock>(value));
  const std::string path = path_from(value, "load", "lock");
  const WithoutGil release;
  return std::make_shared<const KernelLock>(KernelLock::load(path));
}

}  // namespace

std::vector<Tensor> inputs_of(const Session& session, nb::list arrays) {
  std::vector<Tensor> tensors;
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto& inputs = session.inputs();
    const std::string name = i < inputs.size() ? "input '" + inputs[i].name + "'" : "input " + std::to_string(i);
    tensors.push_back(tensor_from(arrays[i], Access::read, name.c_str()));
  }
  return tensors;
}

void put_engines_in_process() {
  static const bool done = [] {
    Runtime::global().engines().add(
        make_in_process_engine("onnxruntime", "xpuruntime.engines.onnxruntime:OnnxRuntime"));
    return true;
  }();
  static_cast<void>(done);
}

namespace {

void register_engine(nb::handle name, nb::handle code, bool in_process) {
  const std::string engine = text_from(name, "register_engine", "name");
  const std::string place = text_from(code, "register_engine", "code");
  const WithoutGil release;
  put_engines_in_process();
  Runtime::global().engines().add(in_process ? make_in_process_engine(engine, place)
                                             : make_process_engine(engine, place));
}

bool unregister_engine(nb::handle name) {
  const std::string engine = text_from(name, "unregister_engine", "name");
  const WithoutGil release;
  put_engines_in_process();
  return Runtime::global().engines().remove(engine);
}

SessionOptions options_from(nb::handle policy, nb::handle execution, const char* function) {
  SessionOptions options;
  if (!policy.is_none()) options.policy = policy_from(policy, function);
  if (!execution.is_none()) options.execution = nb::cast<ExecutionPolicy>(execution);
  return options;
}

/// Puts what it finds into the store in use, or the user's.
EngineTimes measure_engines_on(nb::handle path, nb::list arrays, nb::handle policy, nb::handle execution,
                               double budget_s) {
  const std::string file = path_from(path, "tune_engines");
  SessionOptions options = options_from(policy, execution, "tune_engines");
  std::vector<Tensor> inputs;
  for (const nb::handle array : arrays) inputs.push_back(tensor_from(array, Access::read, "inputs"));
  sync_scope();
  const WithoutGil release;
  Runtime& runtime = Runtime::global();
  put_engines_in_process();
  options.engines = &runtime.engines();
  options.store = runtime.store(StoreMode::read_write);
  return measure_engines(load_onnx(file), runtime.dispatcher(), runtime.devices(), options, inputs, budget_s);
}

/// `like`: a session of the same model, which says what calibration inputs are; None: there are none.
Session load_session(nb::handle path, nb::handle policy, nb::handle execution, nb::handle lock, nb::handle like,
                     nb::list calibration) {
  const std::string file = path_from(path, "load");
  SessionOptions options = options_from(policy, execution, "load");
  if (!like.is_none()) options.calibration = calibration_from(nb::cast<const Session&>(like), calibration);
  if (!lock.is_none()) options.lock = LockUse{lock_of_session(lock)};
  sync_scope();
  const WithoutGil release;
  Runtime& runtime = Runtime::global();
  options.amp = runtime.amp().snapshot();
  put_engines_in_process();
  options.engines = &runtime.engines();
  options.store = runtime.readable_store();
  return Session::load(file, runtime.dispatcher(), runtime.devices(), options);
}

nb::object extent_to_python(const ModelExtent& extent) {
  if (extent.size >= 0) return nb::int_(extent.size);
  return extent.name.empty() ? nb::none() : nb::object(to_python(extent.name));
}

nb::object shape_to_python(const ModelValue& value) {
  if (!value.shape) return nb::none();
  nb::list extents;
  for (const ModelExtent& extent : *value.shape) extents.append(extent_to_python(extent));
  return nb::tuple(extents);
}

nb::str dtype_to_python(const ModelValue& value) {
  return value.dtype ? to_python(*value.dtype) : to_python(value.type);
}

/// `given`: for each output an array that it is written into, or None.
nb::list run_session(const Session& self, nb::list arrays, nb::list given) {
  const std::vector<Tensor> inputs = inputs_of(self, arrays);
  std::vector<std::optional<Tensor>> outputs;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const std::string name = "output '" + self.outputs().at(i).name + "'";
    outputs.emplace_back();
    if (!given[i].is_none()) outputs.back() = tensor_from(given[i], Access::write, name.c_str(), false);
  }
  sync_scope();
  std::vector<Tensor> results;
  {
    const WithoutGil release;
    results = self.run(inputs, outputs);
  }
  nb::list list;
  for (const Tensor& result : results) list.append(make_tensor_object(result));
  return list;
}

/// For inputs of these shapes, in the dtypes of the model.
std::vector<TensorSpec> specs_from(const Session& session, nb::list shapes) {
  std::vector<TensorSpec> specs;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const auto& inputs = session.inputs();
    const std::vector<std::int64_t> shape = integers_from(shapes[i], "Session.explain", "a shape");
    const DataType dtype = i < inputs.size() ? inputs[i].dtype.value_or(DataType::float32) : DataType::float32;
    specs.push_back(make_spec(dtype, Dims(std::span(shape))));
  }
  return specs;
}

std::vector<SessionStep> explain_session(const Session& self, nb::list shapes) {
  const std::vector<TensorSpec> specs = specs_from(self, shapes);
  sync_scope();
  const WithoutGil release;
  return self.explain(specs);
}

std::vector<SessionStep> explain_inputs(const Session& self, nb::list arrays) {
  const std::vector<Tensor> inputs = inputs_of(self, arrays);
  sync_scope();
  const WithoutGil release;
  return self.explain(inputs);
}

KernelLock record_shapes(const Session& self, nb::list shapes, std::uint64_t seed) {
  const std::vector<TensorSpec> specs = specs_from(self, shapes);
  sync_scope();
  const WithoutGil release;
  return record_lock(Runtime::global(), self, specs, seed);
}

KernelLock record_inputs(const Session& self, nb::list arrays, std::uint64_t seed) {
  const std::vector<Tensor> inputs = inputs_of(self, arrays);
  sync_scope();
  const WithoutGil release;
  return record_lock(Runtime::global(), self, inputs, seed);
}

std::uint64_t memory_of_inputs(const Session& self, nb::list arrays) {
  const std::vector<Tensor> inputs = inputs_of(self, arrays);
  sync_scope();
  const WithoutGil release;
  return self.memory_bytes(inputs);
}

SessionProfile profile_session(const Session& self, nb::list arrays, nb::handle runs) {
  const std::vector<Tensor> inputs = inputs_of(self, arrays);
  const std::int64_t count = integer_from(runs, "Session.profile", "runs");
  sync_scope();
  const WithoutGil release;
  return self.profile(inputs, count);
}

/// The calls that take longest first.
std::string profile_text(const SessionProfile& self) {
  std::vector<const CallTime*> calls;
  for (const CallTime& call : self.calls) calls.push_back(&call);
  std::stable_sort(calls.begin(), calls.end(), [](const auto* a, const auto* b) { return a->time_us > b->time_us; });
  char line[64];
  const auto figure = [&](const char* format, double number) {
    std::snprintf(line, sizeof line, format, number);
    return std::string(line);
  };
  std::string text = figure("a run takes %.1f us", self.run_us) + figure(", its calls %.1f us", self.sum_us) + " (" +
                     std::to_string(self.calls.size()) + " calls, medians of " + std::to_string(self.runs) + " runs)";
  for (const CallTime* call : calls) {
    text += figure("\n%10.1f us", call->time_us) + figure(" %5.1f %%  ", call->share * 100) + call->kernel + "  " +
            to_string(call->problem) + "  " + call->node;
    for (const std::string& node : call->fused) text += " + " + node;
    if (call->count > 1) text += "  " + std::to_string(call->count) + " times";
  }
  return text;
}

std::uint64_t memory_of_session(const Session& self, nb::list shapes) {
  const std::vector<TensorSpec> specs = specs_from(self, shapes);
  const WithoutGil release;
  return self.memory_bytes(specs);
}

nb::list names_to_python(const std::vector<std::string>& names) {
  nb::list list;
  for (const std::string& name : names) list.append(to_python(name));
  return list;
}

std::string rejection_text(const EngineRejection& one) {
  return one.engine + " on " + std::string(to_string(one.target)) + ": " + one.reason;
}

std::string times_text(const EngineTimes& times) {
  std::string text = times.chosen.empty() ? "no engine takes the model" : "chosen: " + times.chosen;
  for (const EngineTime& time : times.engines) {
    char number[32];
    std::snprintf(number, sizeof number, "%.1f us", time.median_us);
    text += "; " + time.engine + ": " + (time.reason.empty() ? number : time.reason);
  }
  return text;
}

std::string step_text(const SessionStep& step) {
  std::string how = step.decision   ? step.decision->kernel + ", " + to_string(step.decision->problem)
                    : step.transfer ? to_string(*step.transfer) + ", " + std::to_string(step.transfer->bytes) + " bytes"
                                    : std::string(to_string(step.kind));
  if (!step.fused_into.empty()) how += " into " + step.fused_into;
  return step.node + " (" + step.op + "): " + how;
}

}  // namespace

std::vector<std::vector<Tensor>> calibration_from(const Session& session, nb::list calibration) {
  std::vector<std::vector<Tensor>> inputs;
  for (const nb::handle one : calibration) inputs.push_back(inputs_of(session, nb::cast<nb::list>(one)));
  return inputs;
}

void bind_session(nb::module_& module) {
  nb::class_<ModelValue>(module, "ModelValue", "What a model says of one of its inputs or outputs.")
      .def_prop_ro("name", [](const ModelValue& self) { return to_python(self.name); })
      .def_prop_ro("dtype", dtype_to_python, "A short name such as \"f32\"; ONNX's own where it is none of ours.")
      .def_prop_ro(
          "shape", shape_to_python, nb::sig("def shape(self) -> tuple[int | str | None, ...] | None"),
          "Sizes, names of those that a run may choose, None for unknown ones; None: not even the rank is known.")
      .def("__repr__", [](const ModelValue& self) {
        const nb::str text = nb::str("ModelValue({!r}, {}, {})");
        return text.format(to_python(self.name), dtype_to_python(self), shape_to_python(self));
      });
  nb::class_<Transfer>(module, "Transfer", "A copy that a run of a model makes between devices.")
      .def_prop_ro("source", [](const Transfer& self) { return to_python(to_string(self.source)); })
      .def_prop_ro("destination", [](const Transfer& self) { return to_python(to_string(self.destination)); })
      .def_prop_ro("bytes", [](const Transfer& self) { return self.bytes; })
      .def("__repr__", [](const Transfer& self) {
        return to_python("<" + to_string(self) + ", " + std::to_string(self.bytes) + " bytes>");
      });
  nb::class_<SessionStep>(
      module, "SessionStep",
      "What a node of a model became, for inputs of given shapes. `op` is ONNX's name, `kind` is "
      "\"kernel\", \"view\", \"constant\", \"fused\" or \"transfer\", `output` the first result; only a kernel has a "
      "decision, and only a copy between devices a `transfer`. `device` is where it runs, None of the others. "
      "`fused_into` is the node whose call one that is fused is a part of, `fused` the nodes that are parts of a call.")
      .def_prop_ro("node", [](const SessionStep& self) { return to_python(self.node); })
      .def_prop_ro("op", [](const SessionStep& self) { return to_python(self.op); })
      .def_prop_ro("kind", [](const SessionStep& self) { return to_python(to_string(self.kind)); })
      .def_prop_ro("decision", [](const SessionStep& self) { return self.decision; })
      .def_prop_ro(
          "kernel",
          [](const SessionStep& self) {
            return self.decision ? nb::object(to_python(self.decision->kernel)) : nb::none();
          },
          nb::sig("def kernel(self) -> str | None"))
      .def_prop_ro(
          "device",
          [](const SessionStep& self) {
            if (self.transfer) return nb::object(to_python(to_string(self.transfer->destination)));
            return self.decision ? nb::object(to_python(to_string(self.decision->problem.device))) : nb::none();
          },
          nb::sig("def device(self) -> str | None"))
      .def_prop_ro("transfer", [](const SessionStep& self) { return self.transfer; })
      .def_prop_ro("output", [](const SessionStep& self) { return self.output; })
      .def_prop_ro("output_name", [](const SessionStep& self) { return to_python(self.output_name); })
      .def_prop_ro("fused_into", [](const SessionStep& self) { return to_python(self.fused_into); })
      .def_prop_ro(
          "fused", [](const SessionStep& self) { return names_to_python(self.fused); },
          nb::sig("def fused(self) -> list[str]"))
      .def("__str__", [](const SessionStep& self) { return to_python(step_text(self)); })
      .def("__repr__", [](const SessionStep& self) { return to_python("<" + step_text(self) + ">"); });
  nb::class_<CallTime>(module, "CallTime",
                       "What one call of a model takes: `time_us` is the median of the runs, `share` is of all calls' "
                       "times, `count` how often a run makes it: one in a loop as often as that goes round; `kernel` "
                       "is \"copy to cpu:0\" or the like for a copy between devices. `fused` "
                       "are the nodes that are parts of it besides `node`.")
      .def_prop_ro("node", [](const CallTime& self) { return to_python(self.node); })
      .def_prop_ro("op", [](const CallTime& self) { return to_python(self.op); })
      .def_prop_ro("kernel", [](const CallTime& self) { return to_python(self.kernel); })
      .def_prop_ro("problem", [](const CallTime& self) { return self.problem; })
      .def_prop_ro("count", [](const CallTime& self) { return self.count; })
      .def_prop_ro("time_us", [](const CallTime& self) { return self.time_us; })
      .def_prop_ro("share", [](const CallTime& self) { return self.share; })
      .def_prop_ro(
          "fused", [](const CallTime& self) { return names_to_python(self.fused); },
          nb::sig("def fused(self) -> list[str]"));
  nb::class_<SessionProfile>(module, "SessionProfile",
                             "Where the time of a model's runs goes: `calls` in the order that they run in, `sum_us` "
                             "of all of them, `run_us` of a whole run. As a text: the calls that take longest first.")
      .def_prop_ro("calls", [](const SessionProfile& self) { return self.calls; })
      .def_prop_ro("runs", [](const SessionProfile& self) { return self.runs; })
      .def_prop_ro("sum_us", [](const SessionProfile& self) { return self.sum_us; })
      .def_prop_ro("run_us", [](const SessionProfile& self) { return self.run_us; })
      .def("__str__", [](const SessionProfile& self) { return to_python(profile_text(self)); })
      .def("__repr__", [](const SessionProfile& self) {
        const std::string text = profile_text(self);
        return to_python("<" + text.substr(0, text.find('\n')) + ">");
      });
  nb::class_<EngineRejection>(module, "EngineRejection", "An engine that was asked and does not run a model, and why.")
      .def_prop_ro("engine", [](const EngineRejection& self) { return to_python(self.engine); })
      .def_prop_ro("target", [](const EngineRejection& self) { return to_python(to_string(self.target)); })
      .def_prop_ro("reason", [](const EngineRejection& self) { return to_python(self.reason); })
      .def("__repr__", [](const EngineRejection& self) { return to_python("<" + rejection_text(self) + ">"); });
  nb::class_<SessionRecord>(module, "SessionRecord",
                            "Which engine runs a model, on which type of device, and why; `rejections` are those that "
                            "were asked before. `on_fallback` has the operators that the device lacks for some nodes, "
                            "with how many: they run on the policy's fallback. It is known once shapes are.")
      .def_prop_ro("engine", [](const SessionRecord& self) { return to_python(self.engine); })
      .def_prop_ro("version", [](const SessionRecord& self) { return to_python(self.version); })
      .def_prop_ro("target", [](const SessionRecord& self) { return to_python(to_string(self.target)); })
      .def_prop_ro("is_fallback", [](const SessionRecord& self) { return self.is_fallback; })
      .def_prop_ro("because", [](const SessionRecord& self) { return to_python(self.because); })
      .def_prop_ro("rejections", [](const SessionRecord& self) { return self.rejections; })
      .def_prop_ro(
          "on_fallback",
          [](const SessionRecord& self) {
            nb::dict ops;
            for (const MissingOp& op : self.on_fallback) ops[to_python(op.op)] = op.nodes;
            return ops;
          },
          nb::sig("def on_fallback(self) -> dict[str, int]"))
      .def("__repr__", [](const SessionRecord& self) {
        return to_python("<" + self.engine + " on " + std::string(to_string(self.target)) + ": " + self.because + ">");
      });
  nb::class_<EngineTime>(
      module, "EngineTime",
      "How fast one engine runs a model: medians and minima in microseconds; `reason` says why one was "
      "not measured, or is out.")
      .def_prop_ro("engine", [](const EngineTime& self) { return to_python(self.engine); })
      .def_prop_ro("version", [](const EngineTime& self) { return to_python(self.version); })
      .def_prop_ro("reason", [](const EngineTime& self) { return to_python(self.reason); })
      .def_prop_ro(
          "difference", [](const EngineTime& self) { return self.difference; },
          nb::sig("def difference(self) -> float | None"),
          "Of its results from those of the first engine: floats by the largest magnitude, of others the share that "
          "differs.")
      .def_prop_ro("first_us", [](const EngineTime& self) { return self.first_us; })
      .def_prop_ro("median_us", [](const EngineTime& self) { return self.median_us; })
      .def_prop_ro("min_us", [](const EngineTime& self) { return self.min_us; })
      .def_prop_ro("runs", [](const EngineTime& self) { return self.runs; })
      .def("__repr__", [](const EngineTime& self) {
        const std::string how = self.reason.empty() ? std::to_string(self.median_us) + " us" : self.reason;
        return to_python("<" + self.engine + ": " + how + ">");
      });
  nb::class_<EngineTimes>(
      module, "EngineTimes",
      "Engines side by side: `chosen` is the fastest, \"\" where none takes the model; `not_stored` "
      "says why that could not be put into the store.")
      .def_prop_ro("engines", [](const EngineTimes& self) { return self.engines; })
      .def_prop_ro("chosen", [](const EngineTimes& self) { return to_python(self.chosen); })
      .def_prop_ro("because", [](const EngineTimes& self) { return to_python(self.because); })
      .def_prop_ro("not_stored", [](const EngineTimes& self) { return to_python(self.not_stored); })
      .def("__repr__", [](const EngineTimes& self) { return to_python("<" + times_text(self) + ">"); });
  nb::class_<Session>(module, "LoadedModel", "Behind xpuruntime.Session.")
      .def_prop_ro("inputs", [](const Session& self) { return self.inputs(); })
      .def_prop_ro("outputs", [](const Session& self) { return self.outputs(); })
      .def_prop_ro("path", [](const Session& self) { return to_python(self.model().path); })
      .def_prop_ro("quantization", [](const Session& self) { return self.quantization(); })
      .def_prop_ro("record", [](const Session& self) { return self.record(); })
      .def("run", run_session, nb::arg("inputs"), nb::arg("outputs"))
      .def("explain", explain_session, nb::arg("shapes"))
      .def("explain_inputs", explain_inputs, nb::arg("inputs"))
      .def("record_shapes", record_shapes, nb::arg("shapes"), nb::arg("seed"))
      .def("record_inputs", record_inputs, nb::arg("inputs"), nb::arg("seed"))
      .def("memory_of_inputs", memory_of_inputs, nb::arg("inputs"))
      .def("profile", profile_session, nb::arg("inputs"), nb::arg("runs"))
      .def("memory_bytes", memory_of_session, nb::arg("shapes"));
  module.def("set_engine_python", [](nb::handle program, nb::handle path) {
    xpuruntime::set_engine_python(path_from(program, "load"), path_from(path, "load"));
  });
  module.def("register_engine", register_engine, nb::arg("name").none(), nb::arg("code").none(), nb::arg("in_process"),
             nb::sig("def register_engine(name: str, code: str, in_process: bool) -> None"));
  module.def("unregister_engine", unregister_engine, nb::arg("name").none(),
             nb::sig("def unregister_engine(name: str) -> bool"));
  module.def("measure_engines", measure_engines_on, nb::arg("path").none(), nb::arg("inputs"), nb::arg("policy").none(),
             nb::arg("execution").none(), nb::arg("budget_s"));
  module.def("load_session", load_session, nb::arg("path").none(), nb::arg("policy").none(),
             nb::arg("execution").none(), nb::arg("lock").none(), nb::arg("like").none(), nb::arg("calibration"));
}

}  // namespace xpuruntime::python
