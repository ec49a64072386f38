#include "cli/problem_list.h"

#include <algorithm>
#include <set>

#include "cli/model_lock.h"
#include "core/json_text.h"
#include "xpuruntime/device/current.h"

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
  bool traced = false;  // in a trace, which may have ops that its program registered
};

std::vector<Placed> problems_of_trace(const Json& trace, const std::string& path) {
  std::vector<Placed> texts;
  const auto events = trace.find("traceEvents");
  if (events == trace.end() || !events->is_array()) {
    fail(ErrorCode::corrupt_data, "xrt", "log '" + path + "' is JSON, but not a trace; write one with xrt trace --out");
  }
  std::size_t number = 0;
  for (const Json& event : *events) {
    ++number;
    const auto arguments = event.is_object() ? event.find("args") : event.end();
    if (!event.is_object() || arguments == event.end() || !arguments->is_object()) continue;
    const auto problem = arguments->find("problem");
    if (problem != arguments->end() && problem->is_string())
      texts.push_back(
          {problem->get<std::string>(), "log '" + path + "', event " + std::to_string(number) + ": ", true});
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
  std::string text = read_text_file(path, source, most_bytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);  // editors on Windows begin UTF-8 so
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos || text[begin] != '{') return problems_of_lines(text, path, source);
  return problems_of_trace(parse_json(text, source), path);
}

/// Adds what a text stands for, unless that is known by how it prints.
void add(ListedProblems& list, std::set<std::string>& known, Context& context, const Placed& placed) try {
  const auto is_new = [&](const std::string& canonical) {
    return canonical == placed.text || known.insert(canonical).second;
  };
  if (has_ranges(placed.text)) {
    context.runtime();  // a plugin may bring ops of its own
    ProblemRange range = parse_problem_range(placed.text, context.given_device().value_or(current_device()));
    if (is_new(to_string(range))) list.ranges.push_back(std::move(range));
  } else {
    Problem problem = context.problem(placed.text);
    if (is_new(to_string(problem))) list.problems.push_back(std::move(problem));
  }
} catch (const Error& error) {
  if (placed.place.empty()) throw;
  fail(error.code(), "xrt", placed.place + error.what());
}

/// The op of a traced problem if nothing here has its name: its program registered it. Else empty.
std::string unknown_op(const Placed& placed, Context& context) {
  const auto end = placed.text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_");
  if (!placed.traced || end == 0 || end == placed.text.npos) return {};
  if (placed.text[end] != '(' && placed.text[end] != ':') return {};
  context.runtime();  // a plugin may bring it
  const std::string name = placed.text.substr(0, end);
  return find_op(name) ? "" : name;
}

/// "a, b and 3 more"
std::string names_text(const std::set<std::string>& names) {
  constexpr std::size_t most = 8;
  std::string text;
  std::size_t shown = 0;
  for (auto name = names.begin(); name != names.end() && shown < most; ++name, ++shown) {
    text += (shown == 0 ? "" : ", ") + *name;
  }
  return names.size() <= most ? text : text + " and " + std::to_string(names.size() - most) + " more";
}

}  // namespace

void ProblemList::add_log_to(CLI::App& command) {
  command.add_option("--from-log", log, "Take problems from a trace or a text with one problem or range per line")
      ->type_name("FILE");
}

bool ProblemList::has_model() const { return std::any_of(texts.begin(), texts.end(), names_model); }

ListedProblems ProblemList::read(Context& context) const {
  model.check_used(has_model());
  ListedProblems list;
  std::vector<Placed> all;
  for (const std::string& text : texts) {
    if (!names_model(text)) {
      all.push_back({text});
      continue;
    }
    const ModelCalls calls = calls_of_model(context, text, model);
    for (const Problem& problem : calls.problems) all.push_back({to_string(problem)});
    if (!calls.why_none.empty()) list.models_of_others.push_back(printable(text) + ": " + calls.why_none);
  }
  if (!log.empty()) {
    const auto logged = problems_of_log(log);
    all.insert(all.end(), logged.begin(), logged.end());
  }
  std::set<std::string> seen;  // as they stand there, and as they print
  std::set<std::string> unknown;
  std::size_t left_out = 0;
  for (const Placed& placed : all) {
    if (const std::string op = unknown_op(placed, context); !op.empty()) {
      unknown.insert(op);
      ++left_out;
      continue;
    }
    if (!seen.insert(placed.text).second) continue;
    add(list, seen, context, placed);
    if (list.problems.size() + list.ranges.size() > most_problems) {
      fail(ErrorCode::invalid_argument, "xrt",
           "more than " + std::to_string(most_problems) + " problems were given; split the log");
    }
  }
  const std::string remedy = "; the program registers them: call tune or record_lock in it, or load a --plugin";
  if (list.empty() && list.models_of_others.empty() && left_out > 0) {
    fail(ErrorCode::unknown_name, "xrt",
         "log '" + log + "' holds only problems of ops that are unknown here (" + names_text(unknown) + ")" + remedy);
  }
  if (list.empty() && !has_model()) {
    fail(ErrorCode::invalid_argument, "xrt",
         log.empty() ? "no problem was given; name one, or a log with --from-log"
                     : "log '" + log + "' holds no problem; write one with xrt trace --out, or one problem per line");
  }
  if (left_out > 0) {
    context.note("log '" + log + "': " + std::to_string(left_out) + (left_out == 1 ? " event" : " events") +
                 " of ops that are unknown here left out (" + names_text(unknown) + ")" + remedy);
  }
  return list;
}

}  // namespace xpuruntime::cli
