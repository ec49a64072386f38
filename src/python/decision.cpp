#include "xpuruntime/select/decision.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>
#include <string>
#include <string_view>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/policy_values.h"
#include "python/types.h"
#include "runtime/html.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime::python {
namespace {

std::string cell(std::string_view text) { return "<td style=\"text-align:left\">" + escape_html(text) + "</td>"; }

std::string row(const Candidate& candidate) {
  char time[32] = "";
  if (candidate.time_us) std::snprintf(time, sizeof time, "%.2f", *candidate.time_us);
  const std::string bytes = candidate.workspace_bytes ? std::to_string(*candidate.workspace_bytes) : "";
  const bool chosen = candidate.outcome == Outcome::chosen;
  return std::string(chosen ? "<tr style=\"font-weight:bold\">" : "<tr>") + cell(candidate.kernel) +
         cell(to_string(candidate.outcome)) + cell(time) + cell(bytes) + cell(candidate.reason) + "</tr>\n";
}

/// Casts or copies.
template <class Steps>
std::string steps_line(const char* what, const Steps& steps) {
  std::string text;
  for (const auto& step : steps) {
    text += (text.empty() ? "" : ", ") + std::string(step.is_output ? "output " : "input ") +
            std::to_string(step.index) + " " + std::string(to_string(step.from)) + " to " +
            std::string(to_string(step.to));
  }
  return text.empty() ? "" : "<br>" + std::string(what) + ": " + escape_html(text);
}

std::string caption(const Decision& decision) {
  const bool backward = decision.problem.direction == Direction::backward;
  const DataType dtype = backward ? decision.precision.backward : decision.precision.forward;
  const std::string choice = decision.kernel.empty() ? "nothing can run this" : decision.kernel;
  return "<code>" + escape_html(to_string(decision.problem)) + "</code><br><b>" + escape_html(choice) + "</b> [" +
         std::string(to_string(decision.level)) + "] " + escape_html(decision.because) + "<br>precision " +
         std::string(to_string(dtype)) + ": " + escape_html(decision.precision.because) +
         steps_line("casts", decision.casts) + steps_line("copies", decision.copies);
}

/// A table for notebooks: one row per candidate, what was chosen on top of it. Every text in it is escaped.
std::string to_html(const Decision& decision) {
  std::string html =
      "<table>\n<caption style=\"text-align:left;caption-side:top\">" + caption(decision) + "</caption>\n<thead><tr>";
  for (const char* name : {"kernel", "verdict", "time, us", "workspace, bytes", "reason"}) {
    html += "<th style=\"text-align:left\">" + std::string(name) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Candidate& candidate : decision.candidates) html += row(candidate);
  return html + "</tbody>\n</table>\n";
}

template <class T>
auto text(std::string T::*member) {
  // Not as std::string: a reason may quote a driver's text in any encoding.
  return [member](const T& self) { return to_python(std::string_view(self.*member)); };
}

void bind_candidate(nb::module_& module) {
  nb::class_<Candidate>(module, "Candidate", "One kernel that was looked at.")
      .def_prop_ro("kernel", text(&Candidate::kernel), "Its name.")
      .def_prop_ro(
          "outcome", [](const Candidate& self) { return std::string(to_string(self.outcome)); },
          "\"chosen\": it runs. \"refused\": it cannot or may not. \"passed\": it could have run.")
      .def_prop_ro("reason", text(&Candidate::reason), "Why it was chosen or refused; may be empty.")
      .def_prop_ro(
          "time_us", [](const Candidate& self) { return self.time_us; }, "What was measured; None: nothing.")
      .def_prop_ro(
          "workspace_bytes", [](const Candidate& self) { return self.workspace_bytes; },
          "Temporary memory that it would ask for; None: not known.")
      .def_ro("copied_bytes", &Candidate::copied_bytes,
              "Copied to and from contiguous memory, because it refuses the layout or the alignment of tensors.")
      .def("__repr__", [](const Candidate& self) {
        return printable("Candidate(" + self.kernel + ", " + std::string(to_string(self.outcome)) +
                         (self.reason.empty() ? "" : ": " + self.reason) + ")");
      });
}

void bind_precision_of(nb::module_& module) {
  nb::class_<Precision>(module, "Precision", "The precision that one call is computed in, and who said so.")
      .def_prop_ro(
          "forward", [](const Precision& self) { return to_python(self.forward); },
          "The dtype of the forward direction.")
      .def_prop_ro(
          "backward", [](const Precision& self) { return to_python(self.backward); },
          "The dtype of the backward direction.")
      .def_prop_ro("because", text(&Precision::because), "One sentence.")
      .def_ro("requested", &Precision::requested, "Somebody asked for it; else it is the inputs' own.")
      .def("__repr__", [](const Precision& self) {
        return "Precision(forward=" + std::string(to_string(self.forward)) +
               ", backward=" + std::string(to_string(self.backward)) + ")";
      });
}

void bind_cast_step(nb::module_& module) {
  nb::class_<CastStep>(module, "CastStep", "A tensor that is converted before or after the kernel runs.")
      .def_ro("is_output", &CastStep::is_output, "Of the call; else it is an input.")
      .def_ro("index", &CastStep::index, "Among the call's inputs or outputs.")
      .def_prop_ro(
          "from_dtype", [](const CastStep& self) { return to_python(self.from); }, "Before.")
      .def_prop_ro(
          "to_dtype", [](const CastStep& self) { return to_python(self.to); }, "After.")
      .def_prop_ro("kernel", text(&CastStep::kernel), "Of the op cast.")
      .def("__repr__", [](const CastStep& self) {
        return std::string("CastStep(") + (self.is_output ? "output " : "input ") + std::to_string(self.index) + ": " +
               std::string(to_string(self.from)) + " -> " + std::string(to_string(self.to)) + ")";
      });
}

void bind_copy_step(nb::module_& module) {
  nb::class_<CopyStep>(module, "CopyStep",
                       "A tensor that the kernel gets as a contiguous copy, or writes to one that is copied back.")
      .def_ro("is_output", &CopyStep::is_output, "Of the problem; else it is an input.")
      .def_ro("index", &CopyStep::index, "Among the problem's inputs or outputs.")
      .def_prop_ro(
          "from_spec", [](const CopyStep& self) { return self.from; }, "Before.")
      .def_prop_ro(
          "to_spec", [](const CopyStep& self) { return self.to; }, "After.")
      .def_prop_ro("kernel", text(&CopyStep::kernel), "Of the op copy.")
      .def("__repr__", [](const CopyStep& self) {
        return std::string("CopyStep(") + (self.is_output ? "output " : "input ") + std::to_string(self.index) + ": " +
               to_string(self.from) + " -> " + to_string(self.to) + ")";
      });
}

std::string summary(const Decision& self) {
  return "Decision(" + to_string(self.problem) + " -> " +
         (self.kernel.empty() ? "nothing" : self.kernel + " [" + std::string(to_string(self.level)) + "]") + ")";
}

}  // namespace

void bind_decision(nb::module_& module) {
  bind_candidate(module);
  bind_precision_of(module);
  bind_cast_step(module);
  bind_copy_step(module);
  nb::class_<Decision>(module, "Decision", "What was chosen for a problem, why, and what was turned down and why.")
      .def_prop_ro(
          "problem", [](const Decision& self) { return self.problem; }, "After the casts, before the copies.")
      .def_prop_ro(
          "kernel",
          [](const Decision& self) {
            return self.kernel.empty() ? nb::object(nb::none()) : nb::object(to_python(std::string_view(self.kernel)));
          },
          nb::sig("def kernel(self) -> str | None"), "None: nothing can run this, and `because` says why.")
      .def_prop_ro(
          "kernel_version",
          [](const Decision& self) {
            const std::string version = written_version(self.kernel_version);
            return version.empty() ? nb::object(nb::none()) : nb::object(to_python(std::string_view(version)));
          },
          nb::sig("def kernel_version(self) -> str | None"),
          "Of a kernel that was registered or is a plugin's: its version, or \"unversioned\". None for kernels of "
          "xpuruntime.")
      .def_prop_ro(
          "level", [](const Decision& self) { return std::string(to_string(self.level)); },
          "Who decided: \"lock\", \"force\", \"prefer\", \"rule\" or \"strategy\".")
      .def_prop_ro("because", text(&Decision::because), "One sentence.")
      .def_prop_ro(
          "precision", [](const Decision& self) { return self.precision; }, "What it is computed in, and who said so.")
      .def_prop_ro(
          "casts", [](const Decision& self) { return self.casts; }, "Tensors that are converted, inputs first.")
      .def_prop_ro(
          "copies", [](const Decision& self) { return self.copies; },
          "Tensors that are copied to contiguous memory and back for the kernel, inputs first.")
      .def_prop_ro("plan", text(&Decision::plan), "The plan's token; empty where the kernel had nothing to choose.")
      .def_ro("workspace_bytes", &Decision::workspace_bytes, "Temporary memory of the kernel.")
      .def_prop_ro(
          "candidates", [](const Decision& self) { return self.candidates; }, "Every kernel that was looked at.")
      .def(
          "to_json",
          [](const Decision& self, nb::handle indent) {
            const bool one_line = indent.is_none();
            return self.to_json(one_line ? -1 : static_cast<int>(integer_from(indent, "Decision.to_json", "indent")));
          },
          nb::arg("indent").none() = 2, nb::sig("def to_json(self, indent: int | None = 2) -> str"),
          "One JSON document; indent=None: on one line.")
      .def(
          "to_dict", [](const Decision& self) { return from_json_text(self.to_json(-1)); },
          nb::sig("def to_dict(self) -> dict[str, object]"), "What to_json writes, as a dict.")
      .def("__str__", [](const Decision& self) { return to_python(std::string_view(self.to_text())); })
      .def("__repr__", [](const Decision& self) { return printable(summary(self)); })
      .def("_repr_html_", [](const Decision& self) { return to_python(std::string_view(to_html(self))); })
      .def(
          "__eq__",
          [](const Decision& self, nb::handle other) {
            return nb::isinstance<Decision>(other) && self == nb::cast<const Decision&>(other);
          },
          nb::arg("other").none(), nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const Decision& self) { return static_cast<Py_ssize_t>(hash_of(self.problem) >> 2); });
}

}  // namespace xpuruntime::python
