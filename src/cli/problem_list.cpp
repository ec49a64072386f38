#include "cli/problem_list.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

namespace xpuruntime::cli {
namespace {

using Json = nlohmann::ordered_json;

std::string read_log(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), {});
  if (!file.is_open() || file.bad()) {
    fail(ErrorCode::io_error, "xrt",
         "log '" + path + "' cannot be read; check that it exists and that you may read it");
  }
  return text;
}

std::vector<std::string> problems_of_trace(const Json& trace, const std::string& path) {
  std::vector<std::string> texts;
  const auto events = trace.find("traceEvents");
  if (events == trace.end() || !events->is_array()) {
    fail(ErrorCode::corrupt_data, "xrt", "log '" + path + "' is JSON, but no trace; write one with xrt trace --out");
  }
  for (const Json& event : *events) {
    const auto arguments = event.is_object() ? event.find("args") : event.end();
    if (!event.is_object() || arguments == event.end() || !arguments->is_object()) continue;
    const auto problem = arguments->find("problem");
    if (problem != arguments->end() && problem->is_string()) texts.push_back(problem->get<std::string>());
  }
  return texts;
}

std::vector<std::string> problems_of_lines(const std::string& text) {
  std::vector<std::string> texts;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') continue;
    texts.push_back(line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1));
  }
  return texts;
}

std::vector<std::string> problems_of_log(const std::string& path) {
  const std::string text = read_log(path);
  const Json trace = Json::parse(text, nullptr, false);
  return trace.is_object() ? problems_of_trace(trace, path) : problems_of_lines(text);
}

}  // namespace

void ProblemList::add_log_to(CLI::App& command) {
  command.add_option("--from-log", log, "Take problems from a trace, or from a text with one a line")
      ->type_name("FILE");
}

std::vector<Problem> ProblemList::problems(Context& context) const {
  std::vector<std::string> all = texts;
  if (!log.empty()) {
    const auto logged = problems_of_log(log);
    all.insert(all.end(), logged.begin(), logged.end());
  }
  std::vector<Problem> problems;
  for (const std::string& text : all) {
    Problem problem = context.problem(text);
    if (std::find(problems.begin(), problems.end(), problem) == problems.end()) problems.push_back(std::move(problem));
  }
  if (problems.empty()) {
    fail(ErrorCode::invalid_argument, "xrt",
         log.empty() ? "no problem was given; name one, or a log with --from-log"
                     : "log '" + log + "' holds no problem; write one with xrt trace --out, or a problem a line");
  }
  return problems;
}

}  // namespace xpuruntime::cli
