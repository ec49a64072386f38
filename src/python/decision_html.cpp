#include "python/decision_html.h"

#include <cstdio>
#include <string_view>

#include "runtime/html.h"

namespace xpuruntime::python {
namespace {

std::string cell(std::string_view text) { return "<td style=\"text-align:left\">" + escape_html(text) + "</td>"; }

std::string row(const Candidate& candidate) {
  char time[32] = "";
  if (candidate.time_us) std::snprintf(time, sizeof time, "%.2f", *candidate.time_us);
  const std::string bytes = candidate.workspace_bytes ? std::to_string(*candidate.workspace_bytes) : "";
  const bool chosen = candidate.outcome == Outcome::chosen;
  return std::string(chosen ? "<tr style=\"font-weight:bold\">" : "<tr>") + cell(candidate.kernel) +
         cell(to_string(candidate.outcome)) + cell(time) + cell(bytes) + cell(candidate.reason) + "</tr>\n";
}

/// Casts or copies.
template <class Steps>
std::string steps_line(const char* what, const Steps& steps) {
  std::string text;
  for (const auto& step : steps) {
    text += (text.empty() ? "" : ", ") + std::string(step.is_output ? "output " : "input ") +
            std::to_string(step.index) + " " + std::string(to_string(step.from)) + " to " +
            std::string(to_string(step.to));
  }
  return text.empty() ? "" : "<br>" + std::string(what) + ": " + escape_html(text);
}

std::string caption(const Decision& decision) {
  const bool backward = decision.problem.direction == Direction::backward;
  const DataType dtype = backward ? decision.precision.backward : decision.precision.forward;
  const std::string choice = decision.kernel.empty() ? "nothing can run this" : decision.kernel;
  return "<code>" + escape_html(to_string(decision.problem)) + "</code><br><b>" + escape_html(choice) + "</b> [" +
         std::string(to_string(decision.level)) + "] " + escape_html(decision.because) + "<br>precision " +
         std::string(to_string(dtype)) + ": " + escape_html(decision.precision.because) +
         steps_line("casts", decision.casts) + steps_line("copies", decision.copies);
}

}  // namespace

std::string to_html(const Decision& decision) {
  std::string html =
      "<table>\n<caption style=\"text-align:left;caption-side:top\">" + caption(decision) + "</caption>\n<thead><tr>";
  for (const char* name : {"kernel", "verdict", "time, us", "workspace, bytes", "reason"}) {
    html += "<th style=\"text-align:left\">" + std::string(name) + "</th>";
  }
  html += "</tr></thead>\n<tbody>\n";
  for (const Candidate& candidate : decision.candidates) html += row(candidate);
  return html + "</tbody>\n</table>\n";
}

}  // namespace xpuruntime::python
