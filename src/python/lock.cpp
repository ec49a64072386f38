#include "xpuruntime/select/lock.h"

#include <nanobind/operators.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <map>

#include "core/printable.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/scopes.h"
#include "python/types.h"
#include "xpuruntime/runtime/replay.h"

namespace xpuruntime::python {
namespace {

nb::object text_or_none(const std::string& text) { return text.empty() ? nb::none() : nb::object(to_python(text)); }

LockMode mode_from(nb::handle value) {
  if (nb::isinstance<LockMode>(value)) return nb::cast<LockMode>(value);
  const std::string name = text_from(value, "verify_lock", "mode");
  if (name == "strict") return LockMode::strict;
  if (name == "revalidate") return LockMode::revalidate;
  constexpr std::string_view known[] = {"strict", "revalidate"};
  fail_unknown("verify_lock", "mode", name, known);
}

const KernelLock& lock_from(nb::handle value, const char* function) {
  if (nb::isinstance<KernelLock>(value)) return *nb::inst_ptr<KernelLock>(value);
  raise_type_error("[" + std::string(function) + "] " + a_python_type(value) +
                   " is not a lock; pass a KernelLock, or load one with KernelLock.load(path)");
}

LockEntry add(KernelLock& self, nb::handle decision) {
  if (!nb::isinstance<Decision>(decision)) {
    raise_type_error("[KernelLock.add] decision is " + a_python_type(decision) +
                     "; pass a Decision, such as explain(...) gives");
  }
  const Decision& made = *nb::inst_ptr<Decision>(decision);
  return self.add(made, environment_at(Runtime::global(), made.problem.device));
}

const LockEntry* entry_of(const KernelLock& lock, nb::handle problem) {
  if (nb::isinstance<ProblemRange>(problem)) return lock.find(nb::cast<ProblemRange>(problem));
  const std::string text = nb::isinstance<nb::str>(problem) ? text_from(problem, "KernelLock.find", "problem") : "";
  if (has_ranges(text)) return lock.find(parse_problem_range(text));
  return lock.find_for(problem_from(problem, "KernelLock.find"));
}

std::optional<LockEntry> find(const KernelLock& self, nb::handle problem) {
  const LockEntry* entry = entry_of(self, problem);
  return entry == nullptr ? std::nullopt : std::optional(*entry);
}

std::vector<LockEntry> entries(const KernelLock& self) {
  std::vector<LockEntry> list;
  for (const auto& [text, entry] : self.entries()) list.push_back(entry);
  return list;
}

std::vector<LockedEngine> engines(const KernelLock& self) {
  std::vector<LockedEngine> list;
  for (const auto& [model, engine] : self.engines()) list.push_back(engine);
  return list;
}

KernelLock load_lock(nb::handle path) {
  const std::string file = path_from(path, "KernelLock.load");
  const WithoutGil release;
  return KernelLock::load(file);
}

void save_lock(const KernelLock& self, nb::handle path) {
  const std::string file = path_from(path, "KernelLock.save");
  const KernelLock copy = self;  // another thread may add to it meanwhile
  const WithoutGil release;
  copy.save(file);
}

KernelLock record_problems(const std::vector<Problem>& problems, nb::handle seed) {
  const std::uint64_t number = count_from(seed, "record_lock", "seed");
  sync_scope();
  const WithoutGil release;
  return record_lock(Runtime::global(), problems, number);
}

KernelLock record_log(const std::vector<LogEntry>& log, nb::handle seed) {
  const std::uint64_t number = count_from(seed, "record_lock", "seed");
  const WithoutGil release;
  return record_lock(Runtime::global(), log, number);
}

ReplayReport verify(nb::handle lock, nb::handle mode) {
  const LockMode obeyed = mode_from(mode);
  const bool is_path = nb::isinstance<nb::str>(lock) || nb::hasattr(lock, "__fspath__");
  const LockUse use{std::make_shared<const KernelLock>(is_path ? load_lock(lock) : lock_from(lock, "verify_lock")),
                    obeyed};
  const WithoutGil release;
  return verify_lock(Runtime::global(), use);
}

KernelLock refresh(nb::handle lock, nb::handle report) {
  const KernelLock before = lock_from(lock, "refreshed");
  if (!nb::isinstance<ReplayReport>(report)) {
    raise_type_error("[refreshed] report is " + a_python_type(report) + "; pass what verify_lock returned");
  }
  const ReplayReport tried = nb::cast<ReplayReport>(report);
  const WithoutGil release;
  return refreshed(Runtime::global(), before, tried);
}

std::string repr_of_report(const ReplayReport& self) {
  std::map<std::string_view, std::size_t> outcomes;
  for (const ReplayResult& result : self.results) ++outcomes[to_string(result.outcome)];
  std::string text = "ReplayReport(";
  for (const auto& [outcome, count] : outcomes) text += std::to_string(count) + " " + std::string(outcome) + ", ";
  return text + "fine=" + (self.fine() ? "True)" : "False)");
}

void bind_values(nb::module_& module) {
  nb::enum_<LockMode>(module, "LockMode", "How a lock is obeyed.")
      .value("strict", LockMode::strict, "An entry that was made in another environment is an error.")
      .value("revalidate", LockMode::revalidate,
             "One made on the same device with other software is checked first, and used if it still holds.");
  nb::class_<LockEntry>(module, "LockEntry", "One decision on record.")
      .def_ro("problem", &LockEntry::problem, "Its text as the kernel gets it.")
      .def_ro("kernel", &LockEntry::kernel)
      .def_prop_ro(
          "kernel_version", [](const LockEntry& self) { return text_or_none(self.kernel_version); },
          nb::sig("def kernel_version(self) -> str | None"),
          "Of a kernel that was registered or is a plugin's: its version, or \"unversioned\". None for kernels of "
          "xpuruntime.")
      .def_ro("plan", &LockEntry::plan)
      .def_ro("workspace_bytes", &LockEntry::workspace_bytes)
      .def_ro("environment", &LockEntry::environment)
      .def_prop_ro(
          "outputs", [](const LockEntry& self) { return text_or_none(self.outputs); },
          nb::sig("def outputs(self) -> str | None"), "SHA-256 of what came out, where it was recorded.")
      .def_ro("seed", &LockEntry::seed)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const LockEntry& self) { return nb::hash(to_python(self.problem)); })
      .def("__repr__",
           [](const LockEntry& self) { return printable("LockEntry('" + self.problem + "': " + self.kernel + ")"); });
  nb::class_<LockedEngine>(module, "LockedEngine", "Which engine ran a model, and as what.")
      .def_ro("model", &LockedEngine::model, "Digits of a hash of all but the values of large constants.")
      .def_ro("engine", &LockedEngine::engine)
      .def_ro("version", &LockedEngine::version)
      .def_ro("target", &LockedEngine::target)
      .def_ro("precision", &LockedEngine::precision)
      .def_ro("optimize_level", &LockedEngine::optimize_level)
      .def_ro("environment", &LockedEngine::environment)
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__hash__", [](const LockedEngine& self) { return nb::hash(to_python(self.model)); })
      .def("__repr__", [](const LockedEngine& self) {
        return printable("LockedEngine(" + self.model + ": " + self.engine + " " + self.version + ")");
      });
  nb::class_<LockDifference>(module, "LockDifference", "One thing that two locks do not have in common.")
      .def_ro("problem", &LockDifference::problem)
      .def_ro("field", &LockDifference::field, "\"entry\": one of them lacks it.")
      .def_prop_ro("before", [](const LockDifference& self) { return to_python(self.before); })
      .def_prop_ro("after", [](const LockDifference& self) { return to_python(self.after); })
      .def("__repr__", [](const LockDifference& self) {
        return printable("LockDifference('" + self.problem + "', " + self.field + ": '" + self.before + "' -> '" +
                         self.after + "')");
      });
  nb::class_<ReplayResult>(module, "ReplayResult", "One entry of a lock, tried here.")
      .def_ro("problem", &ReplayResult::problem)
      .def_ro("kernel", &ReplayResult::kernel)
      .def_prop_ro(
          "outcome", [](const ReplayResult& self) { return to_python(to_string(self.outcome)); },
          "\"same\", \"revalidated\" or \"failed\".")
      .def_prop_ro("reason", [](const ReplayResult& self) { return to_python(self.reason); })
      .def_ro("outputs_compared", &ReplayResult::outputs_compared)
      .def("__repr__", [](const ReplayResult& self) {
        return printable("ReplayResult('" + self.problem + "': " + self.kernel + ", '" +
                         std::string(to_string(self.outcome)) + "')");
      });
  nb::class_<ReplayReport>(module, "ReplayReport", "What verify_lock found.")
      .def_ro("results", &ReplayReport::results, "In the order of the lock.")
      .def_ro("ran", &ReplayReport::ran, "False: an entry cannot be replayed here, so nothing ran.")
      .def_prop_ro("fine", &ReplayReport::fine, "Whether no entry failed.")
      .def("__repr__", repr_of_report);
}

}  // namespace

void bind_lock(nb::module_& module) {
  bind_values(module);
  nb::class_<KernelLock> lock(module, "KernelLock", "Decisions to be made again exactly; a file such as kernels.lock.");
  lock.def(nb::init<>())
      .def_prop_ro("entries", entries, "By problem, in the order of the file.")
      .def_prop_ro("engines", engines, "Of models, by model; empty: the lock is of kernels alone.")
      .def("add", add, nb::arg("decision").none(), nb::sig("def add(self, decision: Decision) -> LockEntry"),
           "Records a decision; another choice for a problem that is there is an error.")
      .def("find", find, nb::arg("problem").none(),
           nb::sig("def find(self, problem: Problem | ProblemRange | str) -> LockEntry | None"),
           "The entry that decides a problem: its own, or that of a range that holds it; of a range, its own.")
      .def(
          "diff", [](const KernelLock& self, nb::handle other) { return diff(self, lock_from(other, "diff")); },
          nb::arg("after").none(), nb::sig("def diff(self, after: KernelLock) -> list[LockDifference]"),
          "What differs in the other lock; empty: nothing.")
      .def("to_json", &KernelLock::to_json)
      .def_static(
          "from_json", [](nb::handle json) { return KernelLock::from_json(text_from(json, "from_json", "json")); },
          nb::arg("json").none(), nb::sig("def from_json(json: str) -> KernelLock"))
      .def_static("load", load_lock, nb::arg("path").none(),
                  nb::sig("def load(path: str | os.PathLike[str]) -> KernelLock"))
      .def("save", save_lock, nb::arg("path").none(), nb::sig("def save(self, path: str | os.PathLike[str]) -> None"))
      .def("__len__", [](const KernelLock& self) { return self.entries().size(); })
      .def(
          "__contains__", [](const KernelLock& self, nb::handle problem) { return find(self, problem).has_value(); },
          nb::arg("problem").none(),
          nb::sig("def __contains__(self, problem: Problem | ProblemRange | str, /) -> bool"))
      .def(nb::self == nb::self, nb::sig("def __eq__(self, other: object, /) -> bool"))
      .def("__getstate__", &KernelLock::to_json)
      .def("__setstate__",
           [](KernelLock& self, const std::string& json) { new (&self) KernelLock(KernelLock::from_json(json)); })
      .def("__repr__",
           [](const KernelLock& self) { return "KernelLock(" + std::to_string(self.entries().size()) + " entries)"; });
  lock.attr("__hash__") = nb::none();  // it can be changed
  module.def("record_problems", record_problems, nb::arg("problems"), nb::arg("seed").none());
  module.def("record_log", record_log, nb::arg("log"), nb::arg("seed").none());
  module.def(
      "verify_lock", verify, nb::arg("lock").none(), nb::arg("mode").none() = "strict",
      nb::sig("def verify_lock(lock: KernelLock | str | os.PathLike[str], mode: LockMode | str = 'strict')"
              " -> ReplayReport"),
      "Tries every entry of a lock, or of its file, here; where all can be rebuilt, those with recorded outputs run "
      "and are compared.");
  module.def("refreshed", refresh, nb::arg("lock").none(), nb::arg("report").none(),
             nb::sig("def refreshed(lock: KernelLock, report: ReplayReport) -> KernelLock"),
             "The lock with the environment of this machine for those entries that were revalidated.");
}

}  // namespace xpuruntime::python
