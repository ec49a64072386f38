#include "core/op_table.h"
#include "python/arguments.h"
#include "python/signatures.h"
#include "xpuruntime/registry/catalogue.h"

// The rows of the ops as plain dicts: stubs, tables of the documentation and tests are made from them.

namespace xpuruntime::python {
namespace {

nb::list parts(std::string_view joined) {
  nb::list out;
  for_each_part(joined, [&](std::string_view part) {
    out.append(to_python(part));
    return true;
  });
  return out;
}

nb::dict row_of(const InputSpec& spec) {
  nb::dict row;
  row["name"] = to_python(spec.name);
  row["optional"] = spec.optional;
  row["repeated"] = spec.repeated;
  row["or_number"] = spec.or_number;
  row["gradient"] = spec.gradient;
  row["follows_precision"] = spec.follows_precision;
  row["in_place"] = spec.in_place != 0;
  return row;
}

nb::dict row_of(const AttributeSpec& spec) {
  constexpr std::string_view kinds[] = {"boolean", "integer", "real", "integers", "choice", "dtype"};
  nb::dict row;
  row["name"] = to_python(spec.name);
  row["kind"] = to_python(kinds[static_cast<std::size_t>(spec.kind)]);
  row["python_name"] = to_python(spec.python_name.empty() ? spec.name : spec.python_name);
  row["default"] = default_of(spec);
  row["choices"] = parts(spec.choices);
  row["note"] = to_python(spec.note);
  return row;
}

nb::dict row_of(const SizeSpec& spec) {
  nb::dict row;
  row["name"] = to_python(spec.name);
  row["summary"] = to_python(spec.summary);
  row["free"] = spec.free;
  return row;
}

template <class Spec>
nb::list rows_of(std::span<const Spec> specs) {
  nb::list rows;
  for (const Spec& spec : specs) rows.append(row_of(spec));
  return rows;
}

nb::dict row_of(const CatalogueEntry& entry) {
  nb::dict row;
  row["device_type"] = to_python(to_string(entry.device_type));
  row["name"] = to_python(entry.name);
  row["needs"] = to_python(entry.needs);
  row["dtypes"] = to_python(to_string(entry.dtypes));
  row["backward"] = entry.directions != Directions::forward;
  return row;
}

nb::list kernels_of(OpId op) {
  nb::list rows;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.op == op) rows.append(row_of(entry));
  }
  return rows;
}

nb::dict row_of(const OpInfo& info) {
  constexpr std::string_view sides[] = {"category", "lower", "higher"};
  nb::dict row;
  row["name"] = to_python(info.name);
  row["aliases"] = parts(info.aliases);
  row["category"] = to_python(to_string(info.category));
  row["summary"] = to_python(info.summary);
  row["inputs"] = rows_of(info.inputs);
  row["attributes"] = rows_of(info.attributes);
  row["outputs"] = info.outputs;
  row["sizes"] = rows_of(info.sizes);
  row["sample"] = to_python(info.sample);
  row["kernels"] = kernels_of(info.id);
  row["autocast"] = to_python(sides[static_cast<std::size_t>(info.autocast)]);
  return row;
}

}  // namespace

void bind_op_rows(nb::module_& module) {
  module.def(
      "op_rows",
      [] {
        nb::list rows;
        for (const OpId op : all_ops()) rows.append(row_of(op_info(op)));
        return rows;
      },
      nb::sig("def op_rows() -> list[dict[str, Any]]"),
      "All that is known of each op: names, inputs, attributes, sizes, kernels, documentation.");
}

}  // namespace xpuruntime::python
