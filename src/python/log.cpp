#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdio>

#include "core/json_text.h"
#include "core/names.h"
#include "python/arguments.h"
#include "python/gil.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

Dispatcher& dispatcher() { return Runtime::global().dispatcher(); }

void enable(nb::handle capacity) {
  const std::uint64_t count = count_from(capacity, "enable_dispatch_logging", "capacity");
  if (count == 0) {
    fail(ErrorCode::invalid_argument, "enable_dispatch_logging",
         "a log of 0 calls keeps nothing; pass 1 or more, or call disable_dispatch_logging");
  }
  // A log that cannot be in memory is a slip of the keyboard, found before it is allocated.
  constexpr std::uint64_t most = 1u << 26;
  if (count > most) {
    fail(ErrorCode::invalid_argument, "enable_dispatch_logging",
         "a log of " + std::to_string(count) + " calls is too long; pass at most " + std::to_string(most));
  }
  dispatcher().enable_logging(static_cast<std::size_t>(count));
}

/// Waits for device times that are not there yet, so without the GIL.
std::vector<LogEntry> logs() {
  const WithoutGil released;
  return dispatcher().logs();
}

void save_trace(nb::handle path) {
  const std::string name = path_from(path, "save_trace");
  const WithoutGil released;
  write_file_atomically(name, to_trace_json(dispatcher().logs(), {}, dispatcher().spans()),
                        {"save_trace", "trace file '" + name + "': ", "trace"});
}

std::string repr(const LogEntry& self) {
  char time[32];
  std::snprintf(time, sizeof time, "%.2f", self.elapsed_us);
  return "DispatchLog(" + std::string(self.op_name()) + ": " + std::string(self.selected_kernel()) + ", " + time +
         " us" + (self.failed ? ", failed)" : ")");
}

}  // namespace

void bind_log(nb::module_& module) {
  nb::class_<LogEntry>(module, "DispatchLog", "One call that ran while logging was on.")
      .def_prop_ro(
          "op_name", [](const LogEntry& self) { return to_python(self.op_name()); }, "What was computed.")
      .def_prop_ro(
          "selected_kernel", [](const LogEntry& self) { return to_python(self.selected_kernel()); }, "What ran it.")
      .def_prop_ro(
          "input_shape", [](const LogEntry& self) { return to_python(self.input_shape()); },
          nb::sig("def input_shape(self) -> tuple[int, ...]"), "Of the first input.")
      .def_prop_ro(
          "dtype", [](const LogEntry& self) { return to_python(full_name(self.dtype())); },
          "Of the first input, as NumPy and PyTorch write it: \"float32\".")
      .def_ro("elapsed_us", &LogEntry::elapsed_us, "Of the device where it can tell, else of the host.")
      .def_ro("start_us", &LogEntry::start_us, "Since the dispatcher was made.")
      .def_ro("device_time", &LogEntry::device_time, "Whether elapsed_us was measured by device events.")
      .def_ro("failed", &LogEntry::failed,
              "The launch reported an error; the next entry of the problem is the fallback.")
      .def_ro("thread", &LogEntry::thread, "A small number per thread.")
      .def_prop_ro(
          "decision", [](const LogEntry& self) { return *self.decision; }, "What was chosen, and why.")
      .def("__repr__", [](const LogEntry& self) { return printable(repr(self)); });
  module.def("enable_dispatch_logging", &enable, nb::arg("capacity").none() = 4096,
             nb::sig("def enable_dispatch_logging(capacity: int = 4096) -> None"),
             "Logs calls from now on: the last `capacity` of each thread.");
  module.def(
      "disable_dispatch_logging", [] { dispatcher().disable_logging(); }, "Logs no more; what is there stays.");
  module.def(
      "dispatch_logging_enabled", [] { return dispatcher().logging_enabled(); }, "Whether calls are being logged.");
  module.def("get_dispatch_logs", &logs, "What was logged, oldest first.");
  module.def(
      "dropped_logs", [] { return dispatcher().dropped_logs(); },
      "How many calls the log has dropped for want of room since the last clear.");
  module.def(
      "clear_dispatch_logs", [] { dispatcher().clear_logs(); }, nb::call_guard<WithoutGil>(),
      "Forgets what was logged.");
  module.def("save_trace", &save_trace, nb::arg("path").none(),
             nb::sig("def save_trace(path: str | os.PathLike[str]) -> None"),
             "Writes the log as a trace that Perfetto and chrome://tracing open.");
}

}  // namespace xpuruntime::python
