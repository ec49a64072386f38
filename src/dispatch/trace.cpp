#include <unistd.h>

#include <nlohmann/json.hpp>

#include "xpuruntime/dispatch/dispatch_log.h"

namespace xpuruntime {
namespace {

using Json = nlohmann::ordered_json;

Json to_event(const LogEntry& entry, int process) {
  const Decision& decision = *entry.decision;
  return {{"name", to_string(decision.problem.op)},
          {"cat", entry.failed ? "op,failed" : "op"},
          {"ph", "X"},
          {"ts", entry.start_us},
          {"dur", entry.elapsed_us},
          {"pid", process},
          {"tid", entry.thread},
          {"args",
           {{"kernel", decision.kernel},
            {"problem", to_string(decision.problem)},
            {"level", to_string(decision.level)},
            {"because", decision.because},
            {"clock", entry.device_time ? "device" : "host"}}}};
}

}  // namespace

std::string to_trace_json(std::span<const LogEntry> entries) {
  Json events = Json::array();
  const int process = getpid();
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", "xpuruntime"}}}});
  for (const LogEntry& entry : entries) events.push_back(to_event(entry, process));
  const Json document = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace xpuruntime
