#include "cli/problem_list.h"

#include <set>

#include "core/json_text.h"

namespace xpuruntime::cli {
namespace {

// What a log may be at most; docs/interfaces.md.
constexpr std::size_t most_bytes = std::size_t{256} << 20;
constexpr std::size_t most_line_bytes = std::size_t{64} << 10;
constexpr std::size_t most_problems = 100'000;  // different ones
constexpr int most_depth = 16;                  // other programs' traces may have more in their arguments than ours

/// A problem's text and where it stands, for what is wrong with it; empty: in the arguments.
struct Placed {
  std::string text = {};
  std::string place = {};
};

std::vector<Placed> problems_of_trace(const Json& trace, const std::string& path) {
  std::vector<Placed> texts;
  const auto events = trace.find("traceEvents");
  if (events == trace.end() || !events->is_array()) {
    fail(ErrorCode::corrupt_data, "xrt", "log '" + path + "' is JSON, but no trace; write one with xrt trace --out");
  }
  std::size_t number = 0;
  for (const Json& event : *events) {
    ++number;
    const auto arguments = event.is_object() ? event.find("args") : event.end();
    if (!event.is_object() || arguments == event.end() || !arguments->is_object()) continue;
    const auto problem = arguments->find("problem");
    if (problem != arguments->end() && problem->is_string())
      texts.push_back({problem->get<std::string>(), "log '" + path + "', event " + std::to_string(number) + ": "});
  }
  return texts;
}

std::vector<Placed> problems_of_lines(std::string_view text, const std::string& path, const JsonSource& source) {
  std::vector<Placed> texts;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.size() > most_line_bytes) {
      source.refuse(ErrorCode::corrupt_data, "line " + std::to_string(number) +
                                                 " is longer than any problem may be, which is 64 KiB; check that it "
                                                 "is a log");
    }
    const auto begin = line.find_first_not_of(" \t\r");
    if (begin == line.npos || line[begin] == '#') continue;
    texts.push_back({std::string(line.substr(begin, line.find_last_not_of(" \t\r") - begin + 1)),
                     "log '" + path + "', line " + std::to_string(number) + ": "});
  }
  return texts;
}

std::vector<Placed> problems_of_log(const std::string& path) {
  const JsonSource source = {"xrt", "log '" + path + "': ", "log", most_depth};
  const std::string text = read_text_file(path, source, most_bytes);
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '{') return problems_of_lines(text, path, source);
  return problems_of_trace(parse_json(text, source), path);
}

Problem parsed(Context& context, const Placed& placed) try {
  return context.problem(placed.text);
} catch (const Error& error) {
  if (placed.place.empty()) throw;
  fail(error.code(), "xrt", placed.place + error.what());
}

}  // namespace

void ProblemList::add_log_to(CLI::App& command) {
  command.add_option("--from-log", log, "Take problems from a trace, or from a text with one a line")
      ->type_name("FILE");
}

std::vector<Problem> ProblemList::problems(Context& context) const {
  std::vector<Placed> all;
  for (const std::string& text : texts) all.push_back({text});
  if (!log.empty()) {
    const auto logged = problems_of_log(log);
    all.insert(all.end(), logged.begin(), logged.end());
  }
  std::vector<Problem> problems;
  std::set<std::string> seen;  // as they stand there, and as they print
  for (const Placed& placed : all) {
    if (!seen.insert(placed.text).second) continue;
    Problem problem = parsed(context, placed);
    const std::string canonical = to_string(problem);
    if (canonical != placed.text && !seen.insert(canonical).second) continue;
    problems.push_back(std::move(problem));
    if (problems.size() > most_problems) {
      fail(ErrorCode::invalid_argument, "xrt",
           "more than " + std::to_string(most_problems) + " problems were given; split the log");
    }
  }
  if (problems.empty()) {
    fail(ErrorCode::invalid_argument, "xrt",
         log.empty() ? "no problem was given; name one, or a log with --from-log"
                     : "log '" + log + "' holds no problem; write one with xrt trace --out, or a problem a line");
  }
  return problems;
}

}  // namespace xpuruntime::cli
