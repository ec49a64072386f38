#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/json_text.h"
#include "xpuruntime/dispatch/dispatch_log.h"

namespace xpuruntime {
namespace {

/// Where a slice is drawn: its thread, or for a time of the device's own the device.
std::uint64_t track_of(const LogEntry& entry) {
  const Device device = entry.decision->problem.device;
  return entry.device_time ? 1000 * (1 + static_cast<std::uint64_t>(device.type)) + device.index : entry.thread;
}

Json name_event(const char* kind, int process, std::uint64_t track, const std::string& name) {
  return {{"name", kind}, {"ph", "M"}, {"pid", process}, {"tid", track}, {"args", {{"name", name}}}};
}

Json arguments_of(const Decision& decision) {
  return {{"kernel", decision.kernel},
          {"problem", to_string(decision.problem)},
          {"level", to_string(decision.level)},
          {"because", decision.because}};
}

Json to_event(const Decision& decision, int process) {
  return {{"name", to_string(decision.problem.op)},
          {"cat", "decision"},
          {"ph", "i"},
          {"ts", 0},
          {"pid", process},
          {"tid", 0},
          {"args", arguments_of(decision)}};
}

Json to_event(const LogEntry& entry, int process, double start_us) {
  const Decision& decision = *entry.decision;
  Json arguments = arguments_of(decision);
  arguments["clock"] = entry.device_time ? "device" : "host";
  return {{"name", to_string(decision.problem.op)},
          {"cat", entry.failed ? "op,failed" : "op"},
          {"ph", "X"},
          {"ts", start_us},
          {"dur", entry.elapsed_us},
          {"pid", process},
          {"tid", track_of(entry)},
          {"args", std::move(arguments)}};
}

Json to_event(const LogSpan& span, int process) {
  Json arguments = Json::object();
  for (const auto& [name, value] : span.arguments) arguments[name] = value;
  return {{"name", span.name},      {"cat", span.category}, {"ph", "X"},          {"ts", span.start_us},
          {"dur", span.elapsed_us}, {"pid", process},       {"tid", span.thread}, {"args", std::move(arguments)}};
}

}  // namespace

std::string to_trace_json(std::span<const LogEntry> entries, std::span<const std::shared_ptr<const Decision>> decisions,
                          std::span<const LogSpan> spans) {
  Json events = Json::array();
  const int process = getpid();
  events.push_back(name_event("process_name", process, 0, "xpuruntime"));
  std::set<const Decision*> called;
  for (const LogEntry& entry : entries) called.insert(entry.decision.get());
  for (const auto& decision : decisions) {
    if (!called.contains(decision.get())) events.push_back(to_event(*decision, process));
  }
  for (const LogSpan& span : spans) events.push_back(to_event(span, process));
  // A device takes its work one after the other, later than it was launched: a slice begins where the last one ended.
  std::map<std::uint64_t, double> device_free_at;
  for (const LogEntry& entry : entries) {
    double start_us = entry.start_us;
    if (entry.device_time) {
      const auto [track, is_new] = device_free_at.try_emplace(track_of(entry), 0.0);
      if (is_new) {
        events.push_back(name_event("thread_name", process, track->first, to_string(entry.decision->problem.device)));
      }
      start_us = std::max(start_us, track->second);
      track->second = start_us + entry.elapsed_us;
    }
    events.push_back(to_event(entry, process, start_us));
  }
  const Json document = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return dump_json(document, 1) + "\n";
}

}  // namespace xpuruntime
