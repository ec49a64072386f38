#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdio>

#include "python/arguments.h"
#include "python/gil.h"
#include "python/scopes.h"
#include "python/session.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

double largest(const QuantizationReport& self, double QuantizationError::*error) {
  double found = 0;
  for (const QuantizationError& one : self.errors) found = std::max(found, one.*error);
  return found;
}

std::string report_text(const QuantizationReport& self) {
  const auto kept =
      std::count_if(self.nodes.begin(), self.nodes.end(), [](const auto& node) { return !node.kept.empty(); });
  std::string text = std::to_string(std::ssize(self.nodes) - kept) + " of " + std::to_string(self.nodes.size()) +
                     " products in 8 bits; on " + std::to_string(self.inputs) + " calibration inputs";
  char line[96];
  for (const QuantizationError& one : self.errors) {
    std::snprintf(line, sizeof line, "' is at most %.3g off, %.2f %% of its largest value", one.max_error,
                  one.relative_error * 100);
    text += "\n'" + one.output + line;
  }
  for (const QuantizedNode& node : self.nodes) {
    if (!node.kept.empty()) text += "\n" + node.node + " (" + node.op + ") stays in floats: " + node.kept;
  }
  return text;
}

/// Of the model that a session has; writes the file where it is given a name.
QuantizationReport quantize_session(const Session& session, nb::list calibration, nb::handle out, nb::handle percentile,
                                    nb::handle keep) {
  const std::vector<std::vector<Tensor>> inputs = calibration_from(session, calibration);
  QuantizeOptions options;
  options.percentile = real_from(percentile, "quantize_model", "percentile");
  options.keep = texts_from(keep, "quantize_model", "keep");
  const std::string path = path_from(out, "quantize_model", "out");
  sync_scope();
  const WithoutGil release;
  Runtime& runtime = Runtime::global();
  const QuantizedModel made = quantize(session.model(), inputs, runtime.dispatcher(), runtime.devices(), options);
  save_onnx(made.model, path);
  return made.report;
}

}  // namespace

void bind_quantization(nb::module_& module) {
  nb::class_<QuantizedNode>(module, "QuantizedNode", "What became of a Conv, Gemm or MatMul of a quantized model.")
      .def_prop_ro("node", [](const QuantizedNode& self) { return to_python(self.node); })
      .def_prop_ro("op", [](const QuantizedNode& self) { return to_python(self.op); })
      .def_prop_ro(
          "kept", [](const QuantizedNode& self) { return to_python(self.kept); },
          "Why it stays in floats; empty: it is quantized.");
  nb::class_<QuantizationError>(module, "QuantizationError",
                                "How far an output of a quantized model is from that of the float model, at most.")
      .def_prop_ro("output", [](const QuantizationError& self) { return to_python(self.output); })
      .def_prop_ro("max_error", [](const QuantizationError& self) { return self.max_error; })
      .def_prop_ro(
          "relative_error", [](const QuantizationError& self) { return self.relative_error; },
          "Of the largest magnitude that the float model gives.");
  nb::class_<QuantizationReport>(module, "QuantizationReport",
                                 "What `quantize_model` did, and the error that it measured on the calibration inputs: "
                                 "`max_error` and `relative_error` are the largest of all outputs'.")
      .def_prop_ro("nodes", [](const QuantizationReport& self) { return self.nodes; })
      .def_prop_ro("errors", [](const QuantizationReport& self) { return self.errors; })
      .def_prop_ro("inputs", [](const QuantizationReport& self) { return self.inputs; })
      .def_prop_ro("max_error",
                   [](const QuantizationReport& self) { return largest(self, &QuantizationError::max_error); })
      .def_prop_ro("relative_error",
                   [](const QuantizationReport& self) { return largest(self, &QuantizationError::relative_error); })
      .def("__str__", [](const QuantizationReport& self) { return to_python(report_text(self)); });
  module.def("quantize_session", quantize_session, nb::arg("session"), nb::arg("calibration"), nb::arg("out").none(),
             nb::arg("percentile").none(), nb::arg("keep"));
}

}  // namespace xpuruntime::python
