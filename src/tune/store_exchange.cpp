#include <algorithm>
#include <map>
#include <utility>

#include "core/json_text.h"
#include "tune/entry.h"
#include "tune/json_fields.h"

namespace xpuruntime {
namespace {

// Version 2 has kernel_version. What names none is written as version 1, which older libraries read.
constexpr int latest_version = 2;

int version_of(const StoreContents& contents) {
  const auto versioned = [](const auto& list) {
    return std::any_of(list.begin(), list.end(), [](const auto& entry) { return !entry.kernel_version.empty(); });
  };
  const auto needs_two = [&](const StoreRow& row) {
    return versioned(row.record.measurements) || versioned(row.record.choices) || versioned(row.record.quarantine);
  };
  return std::any_of(contents.begin(), contents.end(), needs_two) ? latest_version : 1;
}

using ByEnvironment = std::map<std::string, ProblemEntries>;  // by its JSON

ByEnvironment sorted(const StoreContents& contents) {
  ByEnvironment all;
  for (const StoreRow& row : contents) {
    ProblemEntries& entries = all[row.environment.to_json()];
    for (const auto& [problem, entry] : by_problem(row.record, "to_json")) entries[problem].merge(entry);
  }
  std::erase_if(all, [](const auto& item) { return item.second.empty(); });
  return all;
}

/// One line each, with commas between them.
template <class Range, class Line>
std::string lines(const Range& range, Line line) {
  std::string text;
  for (const auto& element : range) text += (text.empty() ? "" : ",\n") + line(element);
  return text + "\n";
}

Environment read_environment(const Json& element, const std::string& place, const JsonSource& source) {
  JsonFields fields(element, place, source);
  Environment environment = {fields.text("device"), fields.texts("traits"), fields.texts("versions")};
  fields.done();
  return environment;
}

StoreRow read_row(const Json& element, const std::string& place, const JsonSource& source) {
  JsonFields fields(element, place, source);
  StoreRow row;
  row.environment = read_environment(fields.value("environment"), fields.place_of("environment"), source);
  std::size_t index = 0;
  for (const Json& entry : fields.list("entries")) {
    add_entry(row.record, entry, fields.place_of("entries") + "[" + std::to_string(index++) + "]", source);
  }
  fields.done();
  return row;
}

}  // namespace

std::string to_json(const StoreContents& contents) {
  const auto entry_line = [](const auto& item) { return to_json_line(item.first, item.second); };
  const auto group = [&](const auto& item) {
    return "{\"environment\": " + item.first + ", \"entries\": [\n" + lines(item.second, entry_line) + "]}";
  };
  const ByEnvironment all = sorted(contents);
  const std::string groups = all.empty() ? "" : "\n" + lines(all, group);
  return "{\"version\": " + std::to_string(version_of(contents)) + ", \"environments\": [" + groups + "]}\n";
}

StoreContents store_contents_from_json(std::string_view json) {
  const JsonSource source = {"store_contents_from_json", "store contents: ", "store contents", 7, json};
  const Json document = parse_json(json, source);
  JsonFields fields(document, {}, source);
  if (const Json& version = fields.value("version"); version != 1 && version != latest_version) {
    source.refuse_field("version", "is " + shown(dump_json(version)) +
                                       ", and only 1 and 2 can be read here; export it with this version");
  }
  StoreContents contents;
  for (const Json& row : fields.list("environments")) {
    contents.push_back(read_row(row, "environments[" + std::to_string(contents.size()) + "]", source));
  }
  fields.done();
  return contents;
}

}  // namespace xpuruntime
