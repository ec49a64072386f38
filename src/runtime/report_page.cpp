#include <cstdio>

#include "core/json_text.h"
#include "runtime/html.h"
#include "runtime/report_files.h"
#include "xpuruntime/runtime/report.h"

namespace xpuruntime {
namespace {

/// JSON inside of a script element: no text in it may end the element or open a comment. In JSON the signs can only
/// stand in texts, where \u003c means the same.
std::string inside_script(std::string_view json) {
  std::string out;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      out += c;
    }
  }
  return out;
}

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : ""; }

std::string time_of(const Json& value) {
  if (!value.is_number()) return "";
  char text[40];
  std::snprintf(text, sizeof text, "%.4g us", value.get<double>());
  return text;
}

std::string bytes_of(const Json& value) { return value.is_number() ? dump_json(value) + " B" : ""; }

/// For readers without JavaScript: every decision and every kernel that was looked at, as a table.
std::string plain_table(const Json& document) {
  std::string out =
      "<table class=\"plain\"><thead><tr><th>Problem</th><th>Kernel</th><th>Verdict</th><th>Time</th><th>Workspace</th>"
      "<th>Why</th></tr></thead><tbody>\n";
  for (const Json& decision : document.at("decisions")) {
    for (const Json& candidate : decision.at("candidates")) {
      out += "<tr>";
      for (const std::string& cell : {text_of(decision.at("problem")), text_of(candidate.at("kernel")),
                                      text_of(candidate.at("verdict")), time_of(candidate.at("time_us")),
                                      bytes_of(candidate.at("workspace_bytes")), text_of(candidate.at("reason"))}) {
        out += "<td>" + escape_html(cell) + "</td>";
      }
      out += "</tr>\n";
    }
  }
  return out + "</tbody></table>\n";
}

std::string plain_models(const Json& document) {
  std::string out;
  for (const Json& model : document.value("models", Json::array())) {
    out += "<p>" +
           escape_html(text_of(model.at("model")) + ": engine " + text_of(model.at("engine")) + ", " +
                       text_of(model.at("because"))) +
           "</p>\n<table class=\"plain\"><thead><tr><th>Node</th><th>Operator</th><th>Problem</th><th>Kernel</th>"
           "<th>Time</th><th>Why</th></tr></thead><tbody>\n";
    for (const Json& node : model.at("nodes")) {
      out += "<tr>";
      for (const std::string& cell :
           {text_of(node.at("node")), text_of(node.at("operator")), text_of(node.at("problem")),
            text_of(node.at("kernel")), time_of(node.at("time_us")), text_of(node.at("because"))}) {
        out += "<td>" + escape_html(cell) + "</td>";
      }
      out += "</tr>\n";
    }
    out += "</tbody></table>\n";
  }
  return out;
}

struct Part {
  std::string_view mark = {};
  std::string text = {};
};

/// The template with its marks replaced, in the order of the template: what was put in is not looked at again.
std::string filled(std::string_view page, const std::vector<Part>& parts) {
  std::string out;
  for (const Part& part : parts) {
    const std::size_t mark = page.find(part.mark);
    if (mark == page.npos)
      fail(ErrorCode::internal, "report_page", "the page's template lacks a placeholder; report this");
    out.append(page.substr(0, mark)).append(part.text);
    page.remove_prefix(mark + part.mark.size());
  }
  return out.append(page);
}

}  // namespace

std::string report_page(std::string_view json) {
  constexpr int report_depth = 5;  // the report, its decisions, one of them, its candidates, one of them
  const JsonSource source = {"report_page", "report text: ", "report", report_depth, json};
  const Json document = parse_json(json, source);
  try {
    return filled(report_html, {{"@STYLE@", std::string(report_css)},
                                {"@TABLE@", plain_models(document) + plain_table(document)},
                                {"@DATA@", inside_script(dump_json(document))},
                                {"@SCRIPT@", std::string(report_js)}});
  } catch (const Json::exception&) {
    source.refuse(ErrorCode::invalid_argument, "is not what report_json gives; pass its text as it is");
  }
}

void save_report(const std::string& path, std::string_view page) {
  write_file_atomically(path, page, {"save_report", "report file '" + path + "': ", "report"});
}

}  // namespace xpuruntime
