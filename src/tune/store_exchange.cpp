#include <algorithm>
#include <map>

#include "tune/entry.h"

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

struct Exchange {
  StoreContents environments = {};
};

}  // namespace

template <>
struct FieldsOf<StoreRow> {
  static constexpr FieldRow<StoreRow> rows[] = {
      required_field<&StoreRow::environment>("environment"),
      {"entries",
       [](StoreRow& row, const JsonValue& from) {
         if (!from.json.is_array()) from.refuse("must be a list; put it in square brackets");
         for (std::size_t i = 0; i < from.json.size(); ++i) add_entry(row.record, from.element(i));
       },
       nullptr, Presence::required},
  };
};

template <>
struct FieldsOf<Exchange> {
  static constexpr FieldRow<Exchange> rows[] = {
      version_field<Exchange, latest_version>(Presence::required),
      required_field<&Exchange::environments>("environments"),
  };
};

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
  return read_document<Exchange>(json, source).environments;
}

}  // namespace xpuruntime
