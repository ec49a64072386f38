#include "xpuruntime/tune/store.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include "core/json_text.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/gil.h"
#include "python/policy_values.h"
#include "python/types.h"
#include "xpuruntime/runtime/runtime.h"

namespace xpuruntime::python {
namespace {

using StorePtr = std::shared_ptr<MeasurementStore>;

/// What Python sees as MeasurementStore. Apart from the store itself: the runtime may keep that one past Python's end.
struct StoreObject {
  StorePtr store;
};

std::optional<std::string> optional_text(nb::handle value, const char* function, const char* name) {
  return value.is_none() ? std::nullopt : std::optional(text_from(value, function, name));
}

StoreFilter filter_from(nb::handle op, nb::handle kernel, nb::handle environment, nb::handle older,
                        const char* function) {
  StoreFilter filter;
  if (!op.is_none()) filter.op = std::string(to_string(op_from(op, function)));
  filter.kernel = optional_text(kernel, function, "kernel");
  filter.environment_id = optional_text(environment, function, "environment_id");
  if (!older.is_none()) filter.older_than = static_cast<std::int64_t>(real_from(older, function, "older_than"));
  return filter;
}

StoreObject open(nb::handle path, nb::handle read_only) {
  const StoreMode mode =
      boolean_from(read_only, "open_store", "read_only") ? StoreMode::read_only : StoreMode::read_write;
  const std::string file = path.is_none() ? default_store_path() : path_from(path, "open_store");
  const WithoutGil release;
  return {open_store(file, mode)};
}

std::string exported(const StoreObject& self, const StoreFilter& filter) {
  const WithoutGil release;
  return to_json(self.store->read(filter));
}

nb::object read(const StoreObject& self, nb::handle op, nb::handle kernel, nb::handle environment, nb::handle older) {
  return from_json_text(exported(self, filter_from(op, kernel, environment, older, "MeasurementStore.read")));
}

std::string export_json(const StoreObject& self, nb::handle path, nb::handle op, nb::handle kernel,
                        nb::handle environment, nb::handle older) {
  const StoreFilter filter = filter_from(op, kernel, environment, older, "MeasurementStore.export_json");
  const std::string file = path.is_none() ? "" : path_from(path, "MeasurementStore.export_json");
  std::string text = exported(self, filter);
  if (path.is_none()) return text;
  const WithoutGil release;
  write_file_atomically(file, text, {"MeasurementStore::export_json", "'" + file + "': ", "store"});
  return text;
}

/// What merge takes in: another store, or contents as read() and export_json() give them.
StoreContents contents_from(nb::handle source) {
  if (nb::isinstance<StoreObject>(source)) {
    const StorePtr other = nb::inst_ptr<StoreObject>(source)->store;
    const WithoutGil release;
    return other->read();
  }
  if (nb::isinstance<nb::dict>(source)) return store_contents_from_json(to_json_text(source, "MeasurementStore.merge"));
  raise_type_error("[MeasurementStore.merge] source is " + a_python_type(source) +
                   "; pass another store, or what read() of one returned");
}

std::size_t merge(const StoreObject& self, nb::handle source) {
  const StoreContents contents = contents_from(source);
  const WithoutGil release;
  return self.store->merge(contents);
}

std::size_t import_json(const StoreObject& self, nb::handle path) {
  const std::string file = path_from(path, "MeasurementStore.import_json");
  const WithoutGil release;
  const JsonSource source{"MeasurementStore::import_json", "'" + file + "': ", "store"};
  return self.store->merge(store_contents_from_json(read_text_file(file, source, std::size_t{1} << 30)));
}

std::size_t prune(const StoreObject& self, nb::handle op, nb::handle kernel, nb::handle environment, nb::handle older) {
  const StoreFilter filter = filter_from(op, kernel, environment, older, "MeasurementStore.prune");
  const WithoutGil release;
  return self.store->prune(filter);
}

StorePtr store_from(nb::handle store) {
  if (store.is_none()) return nullptr;
  if (nb::isinstance<StoreObject>(store)) return nb::inst_ptr<StoreObject>(store)->store;
  return open(store, nb::handle(Py_False)).store;
}

void use_store(nb::handle store) {
  const StorePtr chosen = store_from(store);
  const WithoutGil release;
  Runtime::global().use_store(chosen);
}

/// The store in use if it can be written, else the user's own, put in use.
void use_writable_store() {
  const WithoutGil release;
  Runtime& runtime = Runtime::global();
  const StorePtr current = runtime.store();
  if (current == nullptr || current->read_only()) runtime.use_store(open_store(default_store_path()));
}

}  // namespace

void bind_store(nb::module_& module) {
  nb::class_<StoreObject>(module, "MeasurementStore",
                          "Where measurements are kept: a file that many threads and processes may use at once.")
      .def_prop_ro("path", [](const StoreObject& self) { return self.store->path(); })
      .def_prop_ro("read_only", [](const StoreObject& self) { return self.store->read_only(); })
      .def("read", read, nb::arg("op").none() = nb::none(), nb::arg("kernel").none() = nb::none(),
           nb::arg("environment_id").none() = nb::none(), nb::arg("older_than").none() = nb::none(),
           nb::sig("def read(self, op: str | None = None, kernel: str | None = None, "
                   "environment_id: str | None = None, older_than: float | None = None) -> dict[str, object]"),
           "What it holds, all of it or what every filter means; docs/interfaces.md lists the keys.")
      .def("export_json", export_json, nb::arg("path").none() = nb::none(), nb::arg("op").none() = nb::none(),
           nb::arg("kernel").none() = nb::none(), nb::arg("environment_id").none() = nb::none(),
           nb::arg("older_than").none() = nb::none(),
           nb::sig("def export_json(self, path: str | os.PathLike[str] | None = None, op: str | None = None, "
                   "kernel: str | None = None, environment_id: str | None = None, "
                   "older_than: float | None = None) -> str"),
           "The same as a text, written to a file where one is named.")
      .def("merge", merge, nb::arg("source").none(),
           nb::sig("def merge(self, source: MeasurementStore | dict[str, object]) -> int"),
           "Takes in what another store holds; the later measurement stays. Returns how many entries changed.")
      .def("import_json", import_json, nb::arg("path").none(),
           nb::sig("def import_json(self, path: str | os.PathLike[str]) -> int"),
           "Merges a file that export_json wrote. Returns how many entries changed.")
      .def("prune", prune, nb::arg("op").none() = nb::none(), nb::arg("kernel").none() = nb::none(),
           nb::arg("environment_id").none() = nb::none(), nb::arg("older_than").none() = nb::none(),
           nb::sig("def prune(self, op: str | None = None, kernel: str | None = None, "
                   "environment_id: str | None = None, older_than: float | None = None) -> int"),
           "Removes what every filter means, `older_than` in seconds since 1970. Returns how many entries went.")
      .def(
          "check",
          [](const StoreObject& self) {
            const WithoutGil release;
            self.store->check();
          },
          "Reads all there is; damage is a CorruptDataError that says where.")
      .def("__repr__",
           [](const StoreObject& self) { return printable("MeasurementStore('" + self.store->path() + "')"); });
  module.def("open_store", open, nb::arg("path").none() = nb::none(), nb::arg("read_only").none() = false,
             nb::sig("def open_store(path: str | os.PathLike[str] | None = None, read_only: bool = False) -> "
                     "MeasurementStore"),
             "Opens a store, or makes it; without a path that of default_store_path().");
  module.def("default_store_path", default_store_path,
             "$XPURUNTIME_STORE, else xpuruntime/store.sqlite in the user's cache folder.");
  module.def("use_store", use_store, nb::arg("store").none(),
             nb::sig("def use_store(store: MeasurementStore | str | os.PathLike[str] | None) -> None"),
             "Takes measured choices from this store from now on; None: from the times of logged calls.");
  module.def(
      "store_in_use",
      [] {
        const StorePtr store = Runtime::global().store();
        return store == nullptr ? std::nullopt : std::optional(StoreObject{store});
      },
      "The store in use; None where there is none yet.", nb::sig("def store_in_use() -> MeasurementStore | None"));
  module.def("use_writable_store", use_writable_store);
  module.def(
      "refresh_measurements",
      [] {
        const WithoutGil release;
        Runtime::global().refresh_measurements();
      },
      "Policies set and scopes entered from now on see what is in the store now.");
}

}  // namespace xpuruntime::python
