#include <utility>

#include "core/json_text.h"
#include "tune/entry.h"
#include "tune/json_fields.h"

namespace xpuruntime {
namespace {

/// Kernels of this library have none: their entries are as they were before there were any.
template <class T>
Json with_version(Json object, const T& entry) {
  if (!entry.kernel_version.empty()) object["kernel_version"] = entry.kernel_version;
  return object;
}

Json to_json(const TunedChoice& choice) {
  return {{"kernel", choice.kernel},   {"plan", choice.plan},           {"incumbent", choice.incumbent},
          {"because", choice.because}, {"cut_short", choice.cut_short}, {"measured_at", choice.measured_at}};
}

Json to_json(const Measurement& entry) {
  return {{"kernel", entry.kernel},   {"plan", entry.plan},
          {"time_us", entry.time_us}, {"noise_us", entry.noise_us},
          {"runs", entry.runs},       {"workspace_bytes", entry.workspace_bytes},
          {"error", entry.error},     {"measured_at", entry.measured_at}};
}

Json to_json(const QuarantineEntry& entry) {
  Json object = {{"kernel", entry.kernel}, {"reason", entry.reason}, {"found_at", entry.found_at}};
  if (!entry.plan.empty()) object["plan"] = entry.plan;
  return object;
}

template <class T>
Json to_json(const std::vector<T>& list) {
  Json array = Json::array();
  for (const T& entry : list) array.push_back(with_version(to_json(entry), entry));
  return array;
}

void add_parts(Json& object, const ProblemEntry& entry) {
  object["choice"] = entry.choice ? with_version(to_json(*entry.choice), *entry.choice) : Json(nullptr);
  object["measurements"] = to_json(entry.measurements);
  object["quarantine"] = to_json(entry.quarantine);
}

TunedChoice read_choice(JsonFields& fields) {
  TunedChoice choice;
  choice.kernel = fields.text("kernel");
  choice.plan = fields.text("plan");
  choice.incumbent = fields.text("incumbent");
  choice.because = fields.text("because");
  choice.cut_short = fields.boolean("cut_short");
  choice.measured_at = fields.integer("measured_at");
  return choice;
}

Measurement read_measurement(JsonFields& fields) {
  Measurement entry;
  entry.kernel = fields.text("kernel");
  entry.plan = fields.text("plan");
  entry.time_us = fields.number("time_us");
  entry.noise_us = fields.number("noise_us");
  entry.runs = fields.integer("runs");
  entry.workspace_bytes = fields.whole("workspace_bytes");
  entry.error = fields.number("error");
  entry.measured_at = fields.integer("measured_at");
  return entry;
}

QuarantineEntry read_quarantine(JsonFields& fields) {
  QuarantineEntry entry;
  entry.kernel = fields.text("kernel");
  entry.reason = fields.text("reason");
  entry.found_at = fields.integer("found_at");
  entry.plan = fields.text_or_empty("plan");
  return entry;
}

template <class T>
T read_part(const Json& element, const std::string& place, const std::string& problem, const JsonSource& source,
            T (*read)(JsonFields&)) {
  JsonFields fields(element, place, source);
  T part = read(fields);
  part.kernel_version = fields.text_or_empty("kernel_version");
  fields.done();
  part.problem = problem;
  return part;
}

template <class T>
void read_list(std::vector<T>& list, JsonFields& owner, std::string_view name, const std::string& problem,
               T (*read)(JsonFields&)) {
  for (const Json& element : owner.list(name)) {
    const std::string place = owner.place_of(name) + "[" + std::to_string(list.size()) + "]";
    list.push_back(read_part(element, place, problem, owner.source(), read));
  }
}

void read_parts(TuneRecord& record, JsonFields& fields, const std::string& problem) {
  if (const Json& choice = fields.value("choice"); !choice.is_null()) {
    record.choices.push_back(read_part(choice, fields.place_of("choice"), problem, fields.source(), read_choice));
  }
  read_list(record.measurements, fields, "measurements", problem, read_measurement);
  read_list(record.quarantine, fields, "quarantine", problem, read_quarantine);
}

}  // namespace

std::string to_json_line(const ProblemEntry& entry) {
  Json object = Json::object();
  add_parts(object, entry);
  return dump_json(object);
}

std::string to_json_line(const std::string& problem, const ProblemEntry& entry) {
  Json object = {{"problem", problem}};
  add_parts(object, entry);
  return dump_json(object);
}

ProblemEntry entry_from_json(std::string_view problem, std::string_view line) {
  const JsonSource source = {"MeasurementStore", "an entry: ", "entry", 3};
  const Json document = parse_json(line, source);
  JsonFields fields(document, {}, source);
  TuneRecord record;
  read_parts(record, fields, std::string(problem));
  fields.done();
  ProblemEntries entries = by_problem(record, source.function);
  return entries.empty() ? ProblemEntry() : std::move(entries.begin()->second);
}

void add_entry(TuneRecord& record, const Json& element, const std::string& place, const JsonSource& source) {
  JsonFields fields(element, place, source);
  const std::string problem = fields.text("problem");
  TuneRecord part;
  read_parts(part, fields, problem);
  fields.done();
  for (const auto& [name, entry] : by_problem(part, source.function)) append(record, entry);
}

}  // namespace xpuruntime
