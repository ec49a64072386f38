#include <utility>

#include "tune/entry.h"

namespace xpuruntime {

// Kernels of this library have no version: their entries are as they were before there were any.
template <>
struct FieldsOf<TunedChoice> {
  static constexpr FieldRow<TunedChoice> rows[] = {
      required_field<&TunedChoice::kernel>("kernel"),
      required_field<&TunedChoice::plan>("plan"),
      required_field<&TunedChoice::incumbent>("incumbent"),
      required_field<&TunedChoice::because>("because"),
      required_field<&TunedChoice::cut_short>("cut_short"),
      required_field<&TunedChoice::measured_at>("measured_at"),
      text_or_nothing<&TunedChoice::kernel_version>("kernel_version"),
  };
};

template <>
struct FieldsOf<Measurement> {
  static constexpr FieldRow<Measurement> rows[] = {
      required_field<&Measurement::kernel>("kernel"),
      required_field<&Measurement::plan>("plan"),
      required_field<&Measurement::time_us>("time_us"),
      required_field<&Measurement::noise_us>("noise_us"),
      required_field<&Measurement::runs>("runs"),
      required_field<&Measurement::workspace_bytes>("workspace_bytes"),
      required_field<&Measurement::error>("error"),
      required_field<&Measurement::measured_at>("measured_at"),
      text_or_nothing<&Measurement::kernel_version>("kernel_version"),
  };
};

template <>
struct FieldsOf<QuarantineEntry> {
  static constexpr FieldRow<QuarantineEntry> rows[] = {
      required_field<&QuarantineEntry::kernel>("kernel"),
      required_field<&QuarantineEntry::reason>("reason"),
      required_field<&QuarantineEntry::found_at>("found_at"),
      text_or_nothing<&QuarantineEntry::plan>("plan"),
      text_or_nothing<&QuarantineEntry::kernel_version>("kernel_version"),
  };
};

namespace {

/// The parts of an entry know their problem; in JSON it stands once, before them.
struct NamedEntry {
  std::string problem = {};  // empty in a row of the store, which has a column for it
  ProblemEntry entry = {};
};

}  // namespace

template <>
struct FieldsOf<NamedEntry> {
  static constexpr FieldRow<NamedEntry> rows[] = {
      text_or_nothing<&NamedEntry::problem>("problem"),
      {"choice",
       [](NamedEntry& to, const JsonValue& from) {
         if (!from.json.is_null()) read_value(to.entry.choice, from);
       },
       [](const NamedEntry& from) { return from.entry.choice ? written(*from.entry.choice) : Json(nullptr); },
       Presence::required},
      required_field<&NamedEntry::entry, &ProblemEntry::measurements>("measurements"),
      required_field<&NamedEntry::entry, &ProblemEntry::quarantine>("quarantine"),
  };
};

namespace {

/// By its problem, if there is anything in it.
ProblemEntries checked(ProblemEntry& entry, const std::string& problem, const JsonSource& source) {
  if (entry.choice) entry.choice->problem = problem;
  for (Measurement& part : entry.measurements) part.problem = problem;
  for (QuarantineEntry& part : entry.quarantine) part.problem = problem;
  TuneRecord record;
  append(record, entry);
  return by_problem(record, source.function);
}

}  // namespace

std::string to_json_line(const std::string& problem, const ProblemEntry& entry) {
  return dump_json(written(NamedEntry{problem, entry}));
}

std::string to_json_line(const ProblemEntry& entry) { return to_json_line({}, entry); }

ProblemEntry entry_from_json(std::string_view problem, std::string_view line) {
  const JsonSource source = {"MeasurementStore", "an entry: ", "entry", 3};
  NamedEntry read = read_document<NamedEntry>(line, source);
  if (!read.problem.empty()) source.refuse_unknown("problem", {});
  ProblemEntries entries = checked(read.entry, std::string(problem), source);
  return entries.empty() ? ProblemEntry() : std::move(entries.begin()->second);
}

void add_entry(TuneRecord& record, const JsonValue& element) {
  auto read = element.as<NamedEntry>();
  if (read.problem.empty()) element.field("problem", element.json).refuse("is missing; add it");
  for (const auto& [problem, entry] : checked(read.entry, read.problem, element.source)) append(record, entry);
}

}  // namespace xpuruntime
