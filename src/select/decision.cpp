#include "xpuruntime/select/decision.h"

#include <cstdio>

#include "core/json_text.h"
#include "xpuruntime/registry/kernel.h"

namespace xpuruntime {
namespace {

using nlohmann::ordered_json;

constexpr int decision_version = 1;

template <class T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

/// Null where the chosen kernel was not asked, because the device is not here.
ordered_json workspace_of(const Decision& decision) {
  for (const Candidate& candidate : decision.candidates) {
    if (candidate.outcome == Outcome::chosen && !candidate.workspace_bytes) return nullptr;
  }
  return decision.workspace_bytes;
}

template <class Step>
std::string tensor_name(const Step& step) {
  return (step.is_output ? "output " : "input ") + std::to_string(step.index);
}

ordered_json to_json_object(const Candidate& candidate) {
  return {{"kernel", candidate.kernel},
          {"verdict", to_string(candidate.outcome)},
          {"reason", candidate.reason},
          {"time_us", or_null(candidate.time_us)},
          {"workspace_bytes", or_null(candidate.workspace_bytes)},
          {"copied_bytes", candidate.copied_bytes}};
}

template <class Step>
ordered_json to_json_object(const Step& step) {
  return {{"tensor", tensor_name(step)},
          {"from", to_string(step.from)},
          {"to", to_string(step.to)},
          {"kernel", step.kernel}};
}

template <class Step>
std::string step_line(const char* op, const Step& step) {
  return std::string("  ") + op + " " + tensor_name(step) + " " + std::string(to_string(step.from)) + " -> " +
         std::string(to_string(step.to)) + " by " + step.kernel + "\n";
}

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(width, text.size()), ' ');
  return text;
}

std::string time_text(const std::optional<double>& time_us) {
  if (!time_us) return "";
  char text[32];
  std::snprintf(text, sizeof text, "%.2f us", *time_us);
  return text;
}

}  // namespace

std::string_view to_string(Level level) {
  constexpr std::string_view names[] = {"lock", "force", "prefer", "rule", "strategy"};
  return names[static_cast<std::size_t>(level)];
}

std::string_view to_string(Outcome outcome) {
  constexpr std::string_view names[] = {"chosen", "refused", "passed"};
  return names[static_cast<std::size_t>(outcome)];
}

std::string Decision::to_json(int indent) const {
  ordered_json document = {
      {"version", decision_version},
      {"problem", to_string(problem)},
      {"device", to_string(problem.device)},
      {"kernel", kernel.empty() ? ordered_json(nullptr) : ordered_json(kernel)},
      {"kernel_version",
       kernel_version.empty() ? ordered_json(nullptr) : ordered_json(written_version(kernel_version))},
      {"level", to_string(level)},
      {"because", because},
      {"precision",
       {{"forward", to_string(precision.forward)},
        {"backward", to_string(precision.backward)},
        {"because", precision.because}}},
      {"casts", ordered_json::array()},
      {"copies", ordered_json::array()},
      {"plan", plan},
      {"workspace_bytes", workspace_of(*this)},
      {"candidates", ordered_json::array()},
  };
  for (const CastStep& step : casts) document["casts"].push_back(to_json_object(step));
  for (const CopyStep& step : copies) document["copies"].push_back(to_json_object(step));
  for (const Candidate& candidate : candidates) document["candidates"].push_back(to_json_object(candidate));
  // Reasons may quote a driver's text in any encoding; a record must still print.
  return dump_json(document, indent);
}

std::string Decision::to_text() const {
  std::string out = to_string(problem) + "\n";
  out += kernel.empty() ? "  nothing can run this: " + because + "\n"
                        : "  -> " + kernel + " [" + std::string(to_string(level)) + "] " + because + "\n";
  const DataType governs = problem.direction == Direction::forward ? precision.forward : precision.backward;
  // A selector chooses for the problem as it is: nobody was asked about its precision.
  out += "  precision " + std::string(to_string(governs)) + (precision.because.empty() ? "" : ": ") +
         precision.because + "\n";
  for (const CastStep& step : casts) out += step_line("cast", step);
  for (const CopyStep& step : copies) out += step_line("copy", step);
  if (!plan.empty()) out += "  plan " + plan + "\n";
  if (workspace_bytes != 0) out += "  workspace " + std::to_string(workspace_bytes) + " bytes\n";
  std::size_t width = 0;
  for (const Candidate& candidate : candidates) width = std::max(width, candidate.kernel.size());
  for (const Candidate& candidate : candidates) {
    std::string line =
        "  " + padded(std::string(to_string(candidate.outcome)), 8) + " " + padded(candidate.kernel, width);
    const std::string time = time_text(candidate.time_us);
    if (!time.empty()) line += "  " + time;
    if (!candidate.reason.empty()) line += "  " + candidate.reason;
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return printable_lines(out);  // a kernel's reason may quote a driver's text
}

}  // namespace xpuruntime
