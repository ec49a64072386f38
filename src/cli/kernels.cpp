#include <algorithm>
#include <optional>
#include <set>

#include "cli/commands.h"
#include "cli/table.h"
#include "core/json_text.h"
#include "select/never_runs.h"
#include "xpuruntime/registry/catalogue.h"

namespace xpuruntime::cli {
namespace {

/// One kernel name of one op on one device type.
struct KernelRow {
  OpId op = OpId::matmul;
  DeviceType type = DeviceType::cpu;
  std::string name = {};
  CatalogueEntry entry = {};
  bool registered = false;
  std::string why_not = {};  // empty: it can be used here
};

// A name that is registered here may stand in no catalogue row of its own only if the registry has just learnt it.
CatalogueEntry entry_of(OpId op, DeviceType type, std::string_view name) {
  for (const CatalogueEntry& entry : find_in_catalogue(op, name)) {
    if (entry.device_type == type) return entry;
  }
  return {};
}

std::string needs_of(const CatalogueEntry& entry) { return "needs " + std::string(entry.needs); }

/// Why a registered kernel cannot be used here; empty: it can.
std::string why_not(Runtime& runtime, const Kernel& kernel, const CatalogueEntry& entry) {
  const DeviceType type = kernel.device_type();
  if (!runtime.devices().why_absent(type).empty()) return needs_of(entry);
  const auto never = never_runs(runtime.registry(), {type, 0}, kernel.op(), std::string(kernel.name()), false);
  return never ? never->reason : "";
}

// What is registered comes first, in table order: that is the order of preference.
void add_rows(std::vector<KernelRow>& rows, Runtime& runtime, OpId op, DeviceType type) {
  std::set<std::string_view> seen;
  const KernelList kernels = runtime.registry().kernels(op, type);
  for (const auto& kernel : kernels) {
    const CatalogueEntry entry = entry_of(op, type, kernel->name());
    seen.insert(kernel->name());
    rows.push_back({op, type, std::string(kernel->name()), entry, true, why_not(runtime, *kernel, entry)});
  }
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.op != op || entry.device_type != type || seen.count(entry.name) != 0) continue;
    rows.push_back({op, type, std::string(entry.name), entry, false, needs_of(entry)});
  }
}

std::vector<KernelRow> collect(Runtime& runtime, const std::optional<std::string>& op_name) {
  const std::vector<OpId> ops = op_name ? std::vector<OpId>{parse_op(*op_name)} : all_ops();
  std::vector<KernelRow> rows;
  for (const OpId op : ops) {
    for (const DeviceType type : device_types()) add_rows(rows, runtime, op, type);
  }
  return rows;
}

std::string summary_of(const CatalogueEntry& entry) {
  const std::string dtypes = entry.dtypes == any_dtype ? "" : "; " + to_string(entry.dtypes);
  return std::string(entry.summary) + dtypes;
}

std::string line_of(const KernelRow& row, std::size_t width, const Painter& paint) {
  const std::string head = padded(std::string(to_string(row.type)), 7) + " " + padded(row.name, width) + "  ";
  if (row.why_not.empty()) return "  " + head + paint(Colour::green, "yes") + "  " + summary_of(row.entry) + "\n";
  return "  " + paint(Colour::dim, head + "no   " + row.why_not) + "\n";
}

std::string as_text(const std::vector<KernelRow>& rows, const Painter& paint) {
  std::size_t width = 0;
  for (const KernelRow& row : rows) width = std::max(width, row.name.size());
  std::string text;
  std::set<OpId> ops;
  for (const KernelRow& row : rows) {
    if (ops.insert(row.op).second) text += paint(Colour::bold, to_string(row.op)) + "\n";
    text += line_of(row, width, paint);
  }
  const auto usable = std::count_if(rows.begin(), rows.end(), [](const KernelRow& row) { return row.why_not.empty(); });
  return text + std::to_string(rows.size()) + " kernels for " + std::to_string(ops.size()) +
         (ops.size() == 1 ? " op; " : " ops; ") + std::to_string(usable) + " can be used here\n";
}

Json names_of(DataTypeSet dtypes) {
  Json names = Json::array();
  for (int i = 0; i < data_type_count; ++i) {
    if (dtypes.contains(static_cast<DataType>(i))) names.push_back(to_string(static_cast<DataType>(i)));
  }
  return names;
}

std::string as_json(const std::vector<KernelRow>& rows) {
  constexpr const char* directions[] = {"forward", "backward", "both"};
  Json document = {{"version", 1}, {"kernels", Json::array()}};
  for (const KernelRow& row : rows) {
    document["kernels"].push_back({{"op", to_string(row.op)},
                                   {"device_type", to_string(row.type)},
                                   {"kernel", row.name},
                                   {"usable", row.why_not.empty()},
                                   {"why_not", row.why_not.empty() ? Json(nullptr) : Json(row.why_not)},
                                   {"registered", row.registered},
                                   {"summary", row.entry.summary},
                                   {"dtypes", names_of(row.entry.dtypes)},
                                   {"directions", directions[static_cast<std::size_t>(row.entry.directions)]}});
  }
  return dump_json(document, 2) + "\n";
}

}  // namespace

void add_kernels(CLI::App& app, Context& context) {
  CLI::App& command =
      add_command(app, context, "kernels", "List the kernels of each op, best first, and which can be used here",
                  "xrt kernels matmul");
  const auto op = std::make_shared<std::string>();
  const CLI::Option* option = command.add_option("op", *op, "Only those of this op")->type_name("OP");
  command.callback([&context, op, option] {
    // An empty name is no op; only one that was not given stands for all.
    const auto given = option->count() > 0 ? std::optional(*op) : std::nullopt;
    context.command = [&context, given]() -> Answer {
      const std::vector<KernelRow> rows = collect(context.runtime(), given);
      return {context.json ? as_json(rows) : as_text(rows, context.paint)};
    };
  });
}

}  // namespace xpuruntime::cli
