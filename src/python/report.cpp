#include "xpuruntime/runtime/report.h"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "python/arguments.h"
#include "python/gil.h"
#include "python/scopes.h"
#include "python/session.h"

namespace xpuruntime::python {
namespace {

/// A lock, or the path of one, and what the page calls it.
std::shared_ptr<const KernelLock> lock_from(nb::handle value, const char* what, std::string& name) {
  if (value.is_none()) return nullptr;
  if (nb::isinstance<KernelLock>(value)) {
    name = std::string("a ") + (std::string_view(what) == "lock" ? "lock" : "lock before") + " in memory";
    return std::make_shared<const KernelLock>(*nb::inst_ptr<KernelLock>(value));
  }
  name = path_from(value, "report", what);
  const WithoutGil release;
  return std::make_shared<const KernelLock>(KernelLock::load(name));
}

/// By its path; without, the one in use or the user's own.
std::shared_ptr<const MeasurementStore> store_of_report(nb::handle value) {
  const std::string path = value.is_none() ? "" : path_from(value, "report", "store");
  const WithoutGil release;
  if (!value.is_none()) return open_store(path, StoreMode::read_only);
  if (const auto used = Runtime::global().store()) return used;
  return open_default_store();
}

/// Pairs of a session and arrays in the order of its inputs, which are run; the problems of their calls are shown too.
void add_models(nb::list models, ReportOptions& options) {
  for (const nb::handle pair : models) {
    const auto& session = nb::cast<const Session&>(pair[0]);
    const std::vector<Tensor> inputs = inputs_of(session, nb::cast<nb::list>(pair[1]));
    const WithoutGil release;
    options.models.push_back(report_model(session, inputs));
    for (const SessionStep& step : options.models.back().steps) {
      if (step.decision) options.problems.push_back(step.decision->problem);
    }
  }
}

std::string data(const std::vector<Problem>& problems, const std::vector<ProblemRange>& ranges, nb::list models,
                 nb::handle lock, nb::handle against, nb::handle store, nb::handle title) {
  ReportOptions options;
  options.problems = problems;
  options.ranges = ranges;
  options.lock = lock_from(lock, "lock", options.lock_name);
  options.against = lock_from(against, "against", options.against_name);
  options.store = store_of_report(store);
  options.list_store =
      !store.is_none() && options.lock == nullptr && problems.empty() && ranges.empty() && models.size() == 0;
  if (!title.is_none()) options.title = text_from(title, "report", "title");
  sync_scope();
  add_models(models, options);
  const WithoutGil release;
  return report_json(Runtime::global(), options);
}

void save_report_as(nb::handle path, const std::string& json) {
  const std::string file = path_from(path, "report", "out");
  const WithoutGil release;
  save_report(file, report_page(json));
}

}  // namespace

void bind_report(nb::module_& module) {
  module.def("report_json", data, nb::arg("problems"), nb::arg("ranges"), nb::arg("models"), nb::arg("lock").none(),
             nb::arg("against").none(), nb::arg("store").none(), nb::arg("title").none());
  module.def("save_report", save_report_as, nb::arg("path").none(), nb::arg("json"));
}

}  // namespace xpuruntime::python
