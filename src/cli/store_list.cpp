#include "cli/store_list.h"

#include <algorithm>
#include <ctime>
#include <tuple>

#include "cli/table.h"
#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

/// One line: a measurement, a choice or a kernel in quarantine.
struct Line {
  std::string problem = {};
  std::string kernel = {};
  std::string plan = {};
  std::string_view entry = {};  // measured, chosen, quarantined
  std::optional<double> time_us = {};
  std::string because = {};
  std::int64_t at = 0;
  std::size_t environment = 0;
};

std::vector<Line> lines_of(const StoreContents& contents) {
  std::vector<Line> lines;
  for (std::size_t i = 0; i < contents.size(); ++i) {
    const TuneRecord& record = contents[i].record;
    for (const Measurement& m : record.measurements) {
      lines.push_back({m.problem, m.kernel, m.plan, "measured", m.time_us, "", m.measured_at, i});
    }
    for (const TunedChoice& c : record.choices) {
      lines.push_back({c.problem, c.kernel, c.plan, "chosen", {}, c.because, c.measured_at, i});
    }
    for (const QuarantineEntry& q : record.quarantine) {
      lines.push_back({q.problem, q.kernel, "", "quarantined", {}, q.reason, q.found_at, i});
    }
  }
  const auto key = [](const Line& line) {
    return std::tie(line.problem, line.environment, line.entry, line.kernel, line.plan);
  };
  std::sort(lines.begin(), lines.end(), [&](const Line& a, const Line& b) { return key(a) < key(b); });
  return lines;
}

/// The best that any device here says of it.
EnvironmentMatch match_here(const Environment& there, Context& context) {
  const DeviceManager& devices = context.runtime().registry().devices();
  EnvironmentMatch best = {EntryVerdict::refuse, "device " + there.device + " is not here"};
  for (const Device device : devices.devices()) {
    EnvironmentMatch match = compare_environments(there, environment_of(devices.profile(device)));
    if (match.verdict < best.verdict) best = std::move(match);
  }
  return best;
}

/// "2026-11-15 12:30", in UTC.
std::string time_text(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  char text[40];
  if (gmtime_r(&time, &parts) == nullptr || std::strftime(text, sizeof text, "%Y-%m-%d %H:%M", &parts) == 0) return "-";
  return text;
}

std::string duration_of(const std::optional<double>& time_us) { return time_us ? figure("%.4g us", *time_us) : "-"; }

std::string as_text(const StoreContents& contents, const std::vector<EnvironmentMatch>& matches, const Painter& paint) {
  Table table({"problem", "kernel", "entry", "time", "when (UTC)", "environment", "here"});
  for (const Line& line : lines_of(contents)) {
    table.add({line.problem, line.kernel + (line.plan.empty() ? "" : " " + line.plan), std::string(line.entry),
               duration_of(line.time_us), time_text(line.at), contents[line.environment].environment.id(),
               std::string(to_string(matches[line.environment].verdict))});
  }
  std::string text = contents.empty() ? "" : table.to_text(paint);
  for (std::size_t i = 0; i < contents.size(); ++i) {
    text += "environment " + contents[i].environment.id() + ": " + std::string(to_string(matches[i].verdict)) +
            (matches[i].reason.empty() ? "" : ": " + printable(matches[i].reason)) + "\n";
  }
  const std::size_t count = entry_count(contents);
  return text + std::to_string(count) + (count == 1 ? " entry\n" : " entries\n");
}

Json to_json(const Environment& environment, const EnvironmentMatch& match) {
  return {{"id", environment.id()},           {"device", environment.device},        {"traits", environment.traits},
          {"versions", environment.versions}, {"verdict", to_string(match.verdict)}, {"reason", match.reason}};
}

Json to_json(const Line& line, const std::string& environment) {
  return {{"problem", line.problem},
          {"kernel", line.kernel},
          {"plan", line.plan},
          {"entry", line.entry},
          {"time_us", line.time_us ? Json(*line.time_us) : Json(nullptr)},
          {"because", line.because},
          {"measured_at", line.at},
          {"environment", environment}};
}

std::string as_json(const std::string& path, const StoreContents& contents,
                    const std::vector<EnvironmentMatch>& matches) {
  Json document = {{"version", 1}, {"store", path}, {"environments", Json::array()}, {"entries", Json::array()}};
  for (std::size_t i = 0; i < contents.size(); ++i) {
    document["environments"].push_back(to_json(contents[i].environment, matches[i]));
  }
  for (const Line& line : lines_of(contents)) {
    document["entries"].push_back(to_json(line, contents[line.environment].environment.id()));
  }
  return dump_json(document, 2) + "\n";
}

}  // namespace

std::string listed(const std::string& path, const StoreContents& contents, Context& context) {
  std::vector<EnvironmentMatch> matches;
  for (const StoreRow& row : contents) matches.push_back(match_here(row.environment, context));
  return context.json ? as_json(path, contents, matches) : as_text(contents, matches, context.paint);
}

}  // namespace xpuruntime::cli
