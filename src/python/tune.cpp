#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pthread.h>

#include <cmath>
#include <csignal>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/callables.h"
#include "python/gil.h"
#include "python/kernels.h"
#include "python/scopes.h"
#include "python/types.h"
#include "tune/probe.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

// A thread that is gone in the child may have held the GIL there for ever, so the one that forks takes it first.
thread_local bool took_gil = false;
thread_local PyGILState_STATE gil = {};

void before() {
  took_gil = forking_to_probe() && python_kernels_in_use() && interpreter_alive();
  if (!took_gil) return;
  gil = PyGILState_Ensure();
  PyOS_BeforeFork();
}

void in_parent() {
  if (!took_gil) return;
  PyOS_AfterFork_Parent();
  PyGILState_Release(gil);
}

void in_child() {
  if (!took_gil) return;
  PyOS_AfterFork_Child();
  // Ctrl-C is for the parent, which ends this process; here it would pass for a flaw of the kernel.
  std::signal(SIGINT, SIG_IGN);
  PyGILState_Release(gil);
}

/// From now on, a child process that the library makes to try a kernel in can run Python: where a kernel is a Python
/// function, it does. Others' forks are left alone.
void mind_forks() { pthread_atfork(before, in_parent, in_child); }

/// Stops a tuning run for what Python raises, and raises it when the run is over.
class Stop {
 public:
  /// Runs Python code with the GIL; false where it raised, now or before.
  template <class Function>
  bool unless_raised(Function&& function) {
    if (raised_) return false;
    const WithGil gil;
    try {
      if (Py_MakePendingCalls() != 0) throw nb::python_error();
      return function();
    } catch (const nb::python_error&) {
      raised_ = std::current_exception();
      return false;
    }
  }
  void raise() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  std::exception_ptr raised_ = {};
};

TuneOptions options_from(const char* function, nb::handle budget, nb::handle total, nb::handle min_gain,
                         nb::handle timeout, nb::handle isolate, nb::handle seed, nb::handle points) {
  TuneOptions options;
  options.problem_budget_s = real_from(budget, function, "budget_s");
  if (!(options.problem_budget_s >= 0 && std::isfinite(options.problem_budget_s))) {  // by the name that it has here
    fail(ErrorCode::invalid_argument, function,
         "budget_s must be a finite number of seconds, 0 or more; pass such a one");
  }
  if (!total.is_none()) options.total_budget_s = real_from(total, function, "total_budget_s");
  options.min_gain = real_from(min_gain, function, "min_gain");
  options.probe_timeout_s = real_from(timeout, function, "probe_timeout_s");
  options.isolate = boolean_from(isolate, function, "isolate");
  options.seed = count_from(seed, function, "seed");
  if (points.is_none()) return options;
  const std::int64_t most = integer_from(points, function, "range_points");
  if (most < 1) {
    fail(ErrorCode::invalid_argument, function, "range_points must be 1 or more; leave it out for a tenth");
  }
  options.range_points = static_cast<std::size_t>(most);
  return options;
}

/// Tunes in a way of `run`'s own; what progress and finished raise comes out of it.
template <class Run>
auto tune_heard(TuneOptions options, nb::handle progress, nb::handle finished, Run run) {
  Stop stop;
  options.progress = [&](const TuneProgress& now) {
    return stop.unless_raised([&] {
      if (progress.is_none()) return true;
      const nb::object answer = progress(own(now));
      return !answer.is(nb::handle(Py_False));
    });
  };
  const auto hear = [&](const TuneResult& result) {
    (void)stop.unless_raised([&] {
      finished(own(result));
      return true;
    });
  };
  sync_scope();
  auto result = [&] {
    const WithoutGil release;
    return run(options, hear);
  }();
  stop.raise();
  return result;
}

/// The results of the problems, of fewer where it was stopped, and those of the ranges.
nb::tuple tune(const std::vector<Problem>& problems, const std::vector<ProblemRange>& ranges,
               const TuneOptions& options, nb::handle progress, nb::handle finished) {
  const TunedTogether tuned = tune_heard(options, progress, finished, [&](const TuneOptions& heard, const auto& hear) {
    return Runtime::global().tune(problems, ranges, heard, hear);
  });
  return nb::make_tuple(tuned.results, tuned.ranges);
}

/// A call that is tuned on the way must not raise for Ctrl-C in the middle: it runs untuned, and Python raises after
/// it.
bool keep_going(const TuneProgress&) {
  const WithGil gil;
  if (Py_MakePendingCalls() == 0) return true;
  raise_later(nb::python_error());
  return false;
}

nb::object text_or_none(const std::string& text) { return text.empty() ? nb::none() : nb::object(to_python(text)); }

void bind_results(nb::module_& module) {
  nb::class_<TuneProgress>(module, "TuneProgress", "How far a tuning run is.")
      .def_ro("problem", &TuneProgress::problem)
      .def_ro("problem_index", &TuneProgress::problem_index)
      .def_ro("problem_count", &TuneProgress::problem_count)
      .def_ro("candidates_left", &TuneProgress::candidates_left, "Still in the race.")
      .def_ro("spent_s", &TuneProgress::spent_s)
      .def_ro("remaining_s", &TuneProgress::remaining_s, "At most, by the budgets.");
  nb::class_<TunedCandidate>(module, "TunedCandidate", "One kernel in the race.")
      .def_ro("kernel", &TunedCandidate::kernel)
      .def_ro("plan", &TunedCandidate::plan)
      .def_prop_ro(
          "outcome", [](const TunedCandidate& self) { return to_python(to_string(self.outcome)); },
          "\"won\", \"lost\", \"refused\" or \"quarantined\".")
      .def_prop_ro("reason", [](const TunedCandidate& self) { return to_python(self.reason); })
      .def_ro("time_us", &TunedCandidate::time_us)
      .def_ro("noise_us", &TunedCandidate::noise_us)
      .def_ro("runs", &TunedCandidate::runs)
      .def_ro("workspace_bytes", &TunedCandidate::workspace_bytes)
      .def_ro("error", &TunedCandidate::error, "Relative, against the reference.")
      .def_ro("tolerance", &TunedCandidate::tolerance)
      .def("__repr__", [](const TunedCandidate& self) {
        return printable("TunedCandidate('" + self.kernel + "', '" + std::string(to_string(self.outcome)) + "')");
      });
  nb::class_<TuneResult>(module, "TuneResult", "What a race on one problem ended with.")
      .def_ro("problem", &TuneResult::problem)
      .def_prop_ro(
          "incumbent", [](const TuneResult& self) { return text_or_none(self.incumbent); },
          nb::sig("def incumbent(self) -> str | None"), "What would be chosen without measuring.")
      .def_prop_ro(
          "chosen", [](const TuneResult& self) { return text_or_none(self.chosen); },
          nb::sig("def chosen(self) -> str | None"), "None: it was cancelled or not begun, or nothing could run.")
      .def_ro("plan", &TuneResult::plan, "The plan it was chosen with, by its token.")
      .def_prop_ro("because", [](const TuneResult& self) { return to_python(self.because); })
      .def_prop_ro(
          "gain", [](const TuneResult& self) { return self.measured() ? std::optional(self.gain) : std::nullopt; },
          "How many times as fast as the incumbent; None: nothing was timed.")
      .def_ro("cut_short", &TuneResult::cut_short, "A budget ended the race before it was sure.")
      .def_ro("cut_by", &TuneResult::cut_by, "Which budget did: problem_budget_s or total_budget_s; else empty.")
      .def_ro("cancelled", &TuneResult::cancelled)
      .def_ro("spent_s", &TuneResult::spent_s)
      .def_ro("measuring_s", &TuneResult::measuring_s)
      .def_ro("discarded", &TuneResult::discarded, "Readings of the clock that could not be right.")
      .def_ro("candidates", &TuneResult::candidates)
      .def_prop_ro(
          "not_stored", [](const TuneResult& self) { return text_or_none(self.not_stored); },
          nb::sig("def not_stored(self) -> str | None"), "Why what was found is not kept.")
      .def("__repr__", [](const TuneResult& self) {
        return "TuneResult('" + to_string(self.problem) + "': " + (self.chosen.empty() ? "nothing" : self.chosen) + ")";
      });
}

}  // namespace

void bind_tune(nb::module_& module) {
  bind_results(module);
  nb::class_<TuneOptions>(module, "TuneOptions")
      .def(
          "__init__",
          [](TuneOptions* self, const std::string& function, nb::handle budget, nb::handle total, nb::handle min_gain,
             nb::handle timeout, nb::handle isolate, nb::handle seed, nb::handle points) {
            new (self)
                TuneOptions(options_from(function.c_str(), budget, total, min_gain, timeout, isolate, seed, points));
          },
          nb::arg("function"), nb::arg("budget_s").none(), nb::arg("total_budget_s").none(), nb::arg("min_gain").none(),
          nb::arg("probe_timeout_s").none(), nb::arg("isolate").none(), nb::arg("seed").none(),
          nb::arg("range_points") = nb::none());
  module.def("tune", tune, nb::arg("problems"), nb::arg("ranges"), nb::arg("options"), nb::arg("progress").none(),
             nb::arg("finished"),
             nb::sig("def tune(problems: Sequence[Problem], ranges: Sequence[ProblemRange], options: TuneOptions, "
                     "progress: object | None, finished: object) -> tuple[list[TuneResult], list[RangeResult]]"));
  module.def("enable_tuning", [](TuneOptions options) {
    options.progress = keep_going;
    const WithoutGil release;
    Runtime::global().enable_tuning(options);
  });
  module.def(
      "disable_tuning",
      [] {
        const WithoutGil release;
        Runtime::global().disable_tuning();
      },
      "Measures nothing more on the way; what was found stays.");
  mind_forks();
}

}  // namespace xpuruntime::python
